import type { AgentStatus } from '../../domain/agent/schema.ts'
import { LATE_AFTER_MS, lastDueDay } from '../../domain/jobs.ts'
import { statusPayload } from '../../domain/models/shortlist.ts'
import { Refusal } from '../../domain/refusal.ts'
import { DAY_MS } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { AuditRecord } from '../../domain/year/finding.ts'
import { statusContract } from '../agent/contracts.ts'
import { liveContract } from '../feed/live-routes.ts'
import { freeModelsStatusContract } from '../models/routes.ts'
import { historyContract } from '../year/routes.ts'
import { DEMO_NOTICE } from './layout.ts'
import { NOTHING, ageOf, codeSpans, formatCounted, html, instantOf } from './html.ts'
import type { Html } from './html.ts'
import type { PageSources, View } from './rendered-pages.ts'
import { refusalsOf, section } from './sections.ts'
import type { Section, SectionPage, SectionRefusal } from './sections.ts'
import { gapReason } from './year/time-travel.ts'

/** Severity of a fact, which is also shown as text, never by colour alone. */
type FactLevel = 'good' | 'attention' | 'bad' | 'plain'

interface Fact {
  level: FactLevel
  value: Html
  detail: Html
}

interface FactSource {
  label: string
  read: (sources: PageSources, now: Instant) => Promise<Fact>
  refusalOf: (error: unknown) => SectionRefusal
}

/** The status on the home page: one line with the worst fact, which opens to all facts. */
export function statusLine(view: View): Promise<Section | null> {
  return section(view, STATUS, async () => {
    const facts = await readFacts(view)
    return html`<details class="state">
      <summary>${summaryOf(facts)}</summary>
      ${factList(facts)}
    </details>`
  })
}

export const STATUS_PAGE: SectionPage = {
  path: '/status',
  async render(view) {
    const status = await section(view, { ...STATUS, headingLevel: 1 }, async () => {
      const facts = await readFacts(view)
      const notice = view.frame.demo ? html`<p class="notice">${DEMO_NOTICE}</p>` : NOTHING
      return html`${notice} ${factList(facts)}`
    })
    return { title: 'Status · dash', sections: [status] }
  },
}

const STATUS = {
  id: 'status',
  title: 'Status',
  refusalOf: () => ({ status: 500, code: 'internal_error', when: 'an unexpected error' }),
}

type LabelledFact = Fact & Pick<FactSource, 'label'>

/** Reads the facts independently; one that cannot be read shows its error. */
function readFacts({ sources, now, log }: View): Promise<LabelledFact[]> {
  return Promise.all(
    FACTS.map(async ({ label, read, refusalOf }): Promise<LabelledFact> => {
      try {
        return { label, ...(await read(sources, now)) }
      } catch (error) {
        const { code, when, expected = false } = refusalOf(error)
        if (!expected) log.error({ code, fact: label, err: error }, 'status without a fact')
        return { label, level: 'bad', value: html`<code>${code}</code>`, detail: codeSpans(when) }
      }
    }),
  )
}

/** The first of the worst facts in words, or the newest snapshot if no fact needs attention: an old one as its age alone. */
function summaryOf(facts: readonly LabelledFact[]): Html {
  const ofLevel = (level: FactLevel) => facts.filter((fact) => fact.level === level)
  const poor = [...ofLevel('bad'), ...ofLevel('attention')]
  const [worst] = poor
  const feed = facts.find(({ label }) => label === feedFact.label)
  if (!worst && feed?.level !== 'good') return html`Newest snapshot ${feed?.value ?? NOTHING}`
  if (!worst) return html`Up to date<span class="roomy"> · newest snapshot ${feed?.value ?? NOTHING}</span>`
  const { level, label, value } = worst
  const more = poor.length > 1 ? html` · ${poor.length - 1} more` : NOTHING
  return html`<span class="${level}">${MARKS[level]}</span>${label}: ${value}${more}`
}

function factList(facts: readonly LabelledFact[]): Html {
  return html`<dl class="facts">${facts.map(renderFact)}</dl>`
}

const MARKS: Readonly<Record<FactLevel, Html>> = {
  // The reader has not checked it.
  good: NOTHING,
  attention: html`<span class="mark" aria-hidden="true">!</span><span class="word">Warning: </span>`,
  bad: html`<span class="mark" aria-hidden="true">✕</span><span class="word">Problem: </span>`,
  plain: NOTHING,
}

function renderFact({ label, level, value, detail }: LabelledFact): Html {
  return html`<div class="fact ${level}">
    <dt>${label}</dt>
    <dd>${MARKS[level]}${value}</dd>
    <dd class="detail">${detail}</dd>
  </div>`
}

/**
 * Age, in milliseconds, after which a snapshot is not called up to date. It asks for attention when it is a day old: its
 * lists are of use to a reader for longer than its job may be late for the operator.
 */
const OLD_SNAPSHOT_MS = 2 * 3_600_000

const feedFact: FactSource = {
  label: 'Live feed',
  refusalOf: refusalsOf(liveContract),
  async read({ snapshots }, now) {
    const proved = await snapshots.newest('trending')
    if (!proved) return missingFact('No snapshot yet', 'dash collect')
    const { generatedAt } = proved.snapshot
    const age = now - generatedAt
    return {
      level: age > DAY_MS ? 'attention' : age > OLD_SNAPSHOT_MS ? 'plain' : 'good',
      value: ageOf(generatedAt, now),
      detail: html`newest snapshot ${instantOf(generatedAt)}`,
    }
  },
}

const publicationFact: FactSource = {
  label: 'Last publication',
  refusalOf: refusalsOf(historyContract),
  async read({ publications }, now) {
    const last = (await publications.entries()).timeline.at(-1)
    if (!last) return missingFact('None yet', 'dash publish-year')
    const { asOfDay, publishedAt } = last.manifest
    const isDue = asOfDay < lastDueDay(now)
    return {
      level: isDue ? 'attention' : 'good',
      value: html`Year as of ${asOfDay}${isDue ? '; the next one is late' : ''}`,
      detail: html`published ${ageOf(publishedAt, now)}`,
    }
  },
}

const gapFact: FactSource = {
  label: 'Last gap',
  refusalOf: refusalsOf(historyContract),
  async read({ publications }) {
    const { entries } = await publications.entries()
    const gaps = entries.filter((entry) => entry.kind === 'gap')
    const last = gaps.at(-1)
    if (!last) return { level: 'plain', value: html`None`, detail: html`no missed day is recorded` }
    return {
      level: 'plain',
      value: html`${last.asOfDay}`,
      detail: html`${gapReason(last)}; ${formatCounted(gaps.length, 'gaps')} in all`,
    }
  },
}

const auditFact: FactSource = {
  label: 'Last audit',
  refusalOf: auditRefusal,
  async read({ audits }, now) {
    const audit = await audits.newest()
    if (!audit) return missingFact('No record', 'dash verify-archive')
    const { endedAt, ok, objects, publications, whole, head } = audit
    const isOld = now - endedAt > LATE_AFTER_MS.audit
    return {
      level: ok ? (isOld ? 'attention' : 'good') : 'bad',
      value: html`${auditSummary(audit)}, ${ageOf(endedAt, now)}`,
      detail: html`${whole ? NOTHING : html`part: `}${formatCounted(objects, 'objects')} of
        ${formatCounted(publications, 'publications')}, head ${head.seq}
        <code>${head.leaf.slice(0, 8)}</code>`,
    }
  },
}

function auditSummary({ ok, complete, damage }: AuditRecord): string {
  if (ok) return 'Sound'
  if (damage > 0) return `Damaged: ${formatCounted(damage, 'findings')}`
  return complete ? 'Not proved' : 'Not completed'
}

/** The refusal for a record of audits that cannot be read; no interface has one. */
function auditRefusal(error: unknown): SectionRefusal {
  const code = error instanceof Refusal ? error.code : 'internal_error'
  return { status: 503, code, when: 'the audit records could not be read' }
}

const modelFact: FactSource = {
  label: 'Free model',
  refusalOf: refusalsOf(freeModelsStatusContract),
  async read({ recommendation }, now): Promise<Fact> {
    const current = await recommendation()
    const { isUnreadable = false } = current
    const { primary, rankingConfidence, ok, usingSeedFallback } = statusPayload(current, now)
    const age = usingSeedFallback
      ? html`built-in list, not measured`
      : html`updated ${ageOf(Date.parse(current.run.updatedAt), now)}`
    const problem = isUnreadable
      ? '; the stored recommendation cannot be read'
      : ok || usingSeedFallback
        ? ''
        : '; stale'
    return {
      // A server that never measured has nothing that is late.
      level: ok ? 'good' : usingSeedFallback && !isUnreadable ? 'plain' : 'attention',
      value: html`<bdi>${primary}</bdi>${problem}`,
      detail: html`${rankingConfidence} confidence, ${age}`,
    }
  },
}

const chatFact: FactSource = {
  label: 'Chat',
  refusalOf: refusalsOf(statusContract),
  async read({ agent }) {
    const [{ enabled, quotas }, { budget }] = await Promise.all([agent.config(), agent.status()])
    if (!enabled) return { level: 'plain', value: html`Off`, detail: html`off or not set up` }
    const { messagesPerSession, messagesPerDay } = quotas
    const quotaText = html`${messagesPerSession} messages per session, ${messagesPerDay} per day`
    return { ...BUDGETS[budget], detail: html`${BUDGETS[budget].detail}; ${quotaText}` }
  },
}

const BUDGETS: Readonly<Record<AgentStatus['budget'], Fact>> = {
  ok: { level: 'good', value: html`Open`, detail: html`within the day's budget` },
  soft: {
    level: 'attention',
    value: html`Open, without tools`,
    detail: html`the budget of today is nearly used up`,
  },
  exhausted: {
    level: 'attention',
    value: html`Closed until 00:00 UTC`,
    detail: html`the budget of today is used up`,
  },
  unknown: { level: 'bad', value: html`Closed`, detail: html`the budget cannot be read` },
}

function missingFact(value: string, command: string): Fact {
  return { level: 'attention', value: html`${value}`, detail: html`<code>${command}</code> creates one` }
}

const FACTS: readonly FactSource[] = [feedFact, publicationFact, gapFact, auditFact, modelFact, chatFact]
