/** A part of the menu: pages in the order in which they are best read. */
export interface MenuGroup {
  title: string
  /** Addresses below `/docs/`. */
  pages: readonly string[]
}

/** The menu's order: first what a newcomer needs, last what only concerns who changes the program. */
export const MENU_GROUPS: readonly MenuGroup[] = [
  { title: 'Start', pages: ['readme', 'quick-start', 'page', 'commands', 'configuration'] },
  {
    title: 'Asking it',
    pages: ['api', 'history-api', 'feed-api', 'search', 'free-models', 'agent-chat', 'mcp', 'chat'],
  },
  {
    title: 'Running it',
    pages: [
      'deployment',
      'containers',
      'scaling',
      'operations',
      'monitoring',
      'backup',
      'chat-providers',
      'agent-tools',
      'security',
      'troubleshooting',
    ],
  },
  { title: 'Proving it', pages: ['auditing', 'publishing', 'ranking'] },
  { title: 'Feeding it', pages: ['collecting', 'importing', 'articles'] },
  {
    title: 'Choosing models',
    pages: ['evaluating-models', 'model-scores', 'lite-suite', 'model-errors'],
  },
  {
    title: 'The project',
    pages: [
      'architecture',
      'decisions',
      'evidence',
      'benchmarks',
      'contributing',
      'changelog',
      'demo-sources',
    ],
  },
]
