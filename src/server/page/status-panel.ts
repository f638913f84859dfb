import type { AgentStatus } from '../../domain/agent/schema.ts'
import { statusPayload } from '../../domain/models/shortlist.ts'
import { Refusal } from '../../domain/refusal.ts'
import { DAY_MS, addDays } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { AuditRecord } from '../../domain/year/finding.ts'
import { lastCompleteDay } from '../../domain/year/ledger.ts'
import { statusContract } from '../agent/contracts.ts'
import { liveContract } from '../feed/live-routes.ts'
import { freeModelsStatusContract } from '../models/routes.ts'
import type { Log } from '../route.ts'
import { historyContract } from '../year/history.ts'
import { NOTHING, ageOf, codeSpans, counted, html, instantOf } from './html.ts'
import type { Html } from './html.ts'
import { refusalsOf } from './layout.ts'
import type { Panel, PanelRefusal } from './layout.ts'
import type { PageSources } from './page-sources.ts'

/** How what a fact says is to be taken; said in words too, never by colour alone. */
type Standing = 'good' | 'attention' | 'bad' | 'plain'

/** One thing a visitor may want to know first. */
interface Fact {
  standing: Standing
  /** The fact in a few words. */
  value: Html
  /** What belongs to it, in small print. */
  detail: Html
}

/** A place in the strip. */
interface StatusFact {
  label: string
  read(sources: PageSources, now: Instant): Promise<Fact>
  refusalOf(error: unknown): PanelRefusal
}

/** The status strip: every fact is read on its own, and one that cannot be read says why in its place. */
export function statusPanel(log: Log): Panel {
  return {
    id: 'status',
    title: 'Status',
    params: [],
    async render({ sources, now }) {
      const read = await Promise.all(
        FACTS.map(async (fact) => {
          const { label } = fact
          try {
            return factOf(label, await fact.read(sources, now))
          } catch (error) {
            const { code, when, expected = false } = fact.refusalOf(error)
            if (!expected) log.error({ code, fact: label, err: error }, 'status without a fact')
            return factOf(label, {
              standing: 'bad',
              value: html`<code>${code}</code>`,
              detail: codeSpans(when),
            })
          }
        }),
      )
      return html`<dl class="facts">${read}</dl>`
    },
    refusalOf: () => ({ status: 500, code: 'internal_error', when: 'an unexpected error' }),
  }
}

const WORDS: Readonly<Record<Standing, Html>> = {
  good: html`<span class="mark" aria-hidden="true">✓</span>`,
  attention: html`<span class="mark" aria-hidden="true">!</span><span class="unseen">Warning: </span>`,
  bad: html`<span class="mark" aria-hidden="true">✕</span><span class="unseen">Problem: </span>`,
  plain: NOTHING,
}

function factOf(label: string, { standing, value, detail }: Fact): Html {
  return html`<div class="fact ${standing}">
    <dt>${label}</dt>
    <dd>${WORDS[standing]}${value}</dd>
    <dd class="detail">${detail}</dd>
  </div>`
}

/** What should come once a day is late after this long. */
const LATE_MS = 26 * 3_600_000

/** How old the live periods are. */
const feedFact: StatusFact = {
  label: 'Live feed',
  refusalOf: refusalsOf(liveContract),
  async read({ snapshots }, now) {
    const proved = await snapshots.newest('trending')
    if (!proved) return nothing('No snapshot yet', 'dash collect')
    const { generatedAt } = proved.snapshot
    const standing = now - generatedAt > DAY_MS ? 'attention' : 'good'
    return {
      standing,
      value: ageOf(generatedAt, now),
      detail: html`newest snapshot ${instantOf(generatedAt)}`,
    }
  },
}

/** The newest publication of the Year, and whether one is due. */
const publicationFact: StatusFact = {
  label: 'Last publication',
  refusalOf: refusalsOf(historyContract),
  async read({ publications }, now) {
    const last = (await publications.entries()).timeline.at(-1)
    if (!last) return nothing('None yet', 'dash publish-year')
    const { asOfDay, publishedAt } = last.manifest
    const isDue = asOfDay < addDays(lastCompleteDay(now), -1) || now - publishedAt > LATE_MS
    return {
      standing: isDue ? 'attention' : 'good',
      value: html`Year as of ${asOfDay}`,
      detail: html`published ${ageOf(publishedAt, now)}${isDue ? html`; the next one is late` : NOTHING}`,
    }
  },
}

/** The newest day without a publication. */
const gapFact: StatusFact = {
  label: 'Last gap',
  refusalOf: refusalsOf(historyContract),
  async read({ publications }) {
    const { entries, timeline } = await publications.entries()
    const gaps = entries.filter((entry) => entry.kind === 'gap')
    const last = gaps.at(-1)
    const whole = timeline.length === 0 ? 'nothing is due yet' : 'every day since the first is published'
    if (!last) return { standing: 'plain', value: html`None`, detail: html`${whole}` }
    const why =
      last.reason === 'missed'
        ? html`no publication was attempted`
        : html`${counted(last.attempts, 'attempts')} failed`
    return {
      standing: 'plain',
      value: html`${last.asOfDay}`,
      detail: html`${why}; ${counted(gaps.length, 'gaps')} in all`,
    }
  },
}

/** How the archive was found last, as `verify-archive` left it. */
const auditFact: StatusFact = {
  label: 'Last audit',
  refusalOf: auditRefusal,
  async read({ audits }, now) {
    const audit = await audits.newest()
    if (!audit) return nothing('No record', 'dash verify-archive')
    const { endedAt, ok, objects, publications, whole, head } = audit
    const isOld = now - endedAt > 7 * DAY_MS
    return {
      standing: ok ? (isOld ? 'attention' : 'good') : 'bad',
      value: html`${verdictOf(audit)}, ${ageOf(endedAt, now)}`,
      detail: html`${whole ? NOTHING : html`part: `}${counted(objects, 'objects')} of
        ${counted(publications, 'publications')}, head ${head.seq} <code>${head.leaf.slice(0, 8)}</code>`,
    }
  },
}

function verdictOf({ ok, complete, damage }: AuditRecord): string {
  if (ok) return 'Sound'
  if (damage > 0) return `Damaged: ${counted(damage, 'findings')}`
  return complete ? 'Not proved' : 'Not completed'
}

/** Records of audits have no interface of their own: the page alone tells why one cannot be read. */
function auditRefusal(error: unknown): PanelRefusal {
  const code = error instanceof Refusal ? error.code : 'internal_error'
  return { status: 503, code, when: 'the audit records could not be read' }
}

/** The model that is recommended, how sure that is, and how old. */
const modelFact: StatusFact = {
  label: 'Free model',
  refusalOf: refusalsOf(freeModelsStatusContract),
  async read({ recommendation }, now): Promise<Fact> {
    const current = await recommendation()
    const { primary, rankingConfidence, ok, usingSeedFallback } = statusPayload(current, now)
    const age = usingSeedFallback
      ? html`built-in seed, not measured`
      : html`evaluated ${ageOf(Date.parse(current.run.updatedAt), now)}${ok ? NOTHING : html`; stale`}`
    return {
      standing: ok ? 'good' : 'attention',
      value: html`<bdi>${primary}</bdi>`,
      detail: html`${rankingConfidence} confidence, ${age}`,
    }
  },
}

/** Whether the chat answers, and how the day's money stands. */
const chatFact: StatusFact = {
  label: 'Chat',
  refusalOf: refusalsOf(statusContract),
  async read({ agent }) {
    const [{ enabled, quotas }, { budget }] = await Promise.all([agent.config(), agent.status()])
    if (!enabled) return { standing: 'plain', value: html`Off`, detail: html`off or not set up` }
    const { messagesPerSession, messagesPerDay } = quotas
    const bounds = html`${messagesPerSession} messages per session, ${messagesPerDay} per day`
    return { ...BUDGETS[budget], detail: html`${BUDGETS[budget].detail}; ${bounds}` }
  },
}

const BUDGETS: Readonly<Record<AgentStatus['budget'], Fact>> = {
  ok: { standing: 'good', value: html`Open`, detail: html`within the day's budget` },
  soft: {
    standing: 'attention',
    value: html`Open, without tools`,
    detail: html`the budget of today is nearly used up`,
  },
  exhausted: {
    standing: 'attention',
    value: html`Closed until 00:00 UTC`,
    detail: html`the budget of today is used up`,
  },
  unknown: { standing: 'bad', value: html`Closed`, detail: html`the budget cannot be read` },
}

function nothing(value: string, command: string): Fact {
  return { standing: 'attention', value: html`${value}`, detail: html`<code>${command}</code> creates one` }
}

const FACTS: readonly StatusFact[] = [feedFact, publicationFact, gapFact, auditFact, modelFact, chatFact]
