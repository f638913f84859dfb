/** How many questions are remembered between runs. */
export const QUESTIONS_KEPT = 1_000

/** Keys and tokens as their makers mark them, and a password that is named one. */
const SECRETS = [
  /\bsk-[\w-]{16,}/,
  /\b(?:gh[opusr]|github_pat|glpat|xox[abprs]|hf|r8|npm|pypi)[_-][\w-]{16,}/,
  /\bA[KS]IA[A-Z0-9]{16}\b/,
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/,
  /\bv1\.[\w-]{20,}\.[\w-]{20,}/,
  /-----BEGIN [A-Z ]*PRIVATE KEY/,
  /\b(?:password|passwd|secret|token|api[_-]?key|bearer)\b\s*[:= ]\s*\S{8,}/i,
  /:\/\/[^\s/:@]+:[^\s/@]+@/,
]

/**
 * Whether a question may be written down: not one that begins with a space, as shells have it, and none that holds what
 * looks like a secret.
 */
export function mayRemember(question: string): boolean {
  return (
    question.trim() !== '' && !question.startsWith(' ') && !SECRETS.some((secret) => secret.test(question))
  )
}

/** The line of a file that holds a question, with its line end. */
export function rememberedLine(question: string): string {
  return `${JSON.stringify(question)}\n`
}

/** Questions of a file, oldest first, each where it was asked last; lines that hold none are left out. */
export function rememberedQuestions(text: string): string[] {
  const questions = new Set<string>()
  for (const line of text.split('\n')) {
    const question = parseLine(line)
    if (question === null) continue
    questions.delete(question)
    questions.add(question)
  }
  return [...questions].slice(-QUESTIONS_KEPT)
}

function parseLine(line: string): string | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'string' && value !== '' ? value : null
  } catch {
    return null
  }
}
