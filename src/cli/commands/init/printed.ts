import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { shellWord } from './units.ts'
import type { Printed } from './questions.ts'
import type { Installation, Unit } from './units.ts'

/** What runs an installation, as far as it was chosen; what was not is empty. */
export interface Runners {
  units: readonly Unit[]
  /** Paths the units were written to; empty: they are printed. */
  unitFiles: readonly string[]
  crontab: string
  containers: string
}

/** The text of standard output. */
export function printedText(
  kinds: readonly Printed[],
  { units, unitFiles, crontab, containers }: Runners,
): string {
  const paths = unitFiles.map((path) => `#   ${path}`)
  const files =
    paths.length > 0
      ? [`# written:\n${paths.join('\n')}\n`]
      : units.map(({ name, text }) => `# --- /etc/systemd/system/${name}\n${text}`)
  if (!kinds.includes('systemd')) return `${crontab}${containers}`.trimEnd()
  const instead = crontab === '' ? [] : [`# --- instead of the timers: ${crontab.replace(/^# /, '')}`]
  return [...files, ...instead].join('\n').trimEnd()
}

/** Settings that the image gives itself: its volume, and the address the compose file publishes. */
const SETTINGS_OF_IMAGE = 'DASH_DATA_DIR|HOST|PORT'

/**
 * The commands that run the compose file of the package with the env file of an installation (docs/containers.md).
 *
 * @param baseUrl address the server is reached at from outside; null: not known yet
 */
export function containerCommands({ root, dotenv }: Installation, baseUrl: string | null): string {
  const compose = join(root, 'compose.yaml')
  if (!existsSync(compose))
    return `# Containers need the source of dash: ${compose} is not there, clone the project (docs/containers.md)\n`
  const domain = baseUrl === null ? 'dash.example.org' : new URL(baseUrl).hostname
  const append = `echo ${shellWord(`DASH_DOMAIN=${domain}`)} >> .env`
  const env = join(root, '.env')
  const settings =
    dotenv === env
      ? `sed -i -E '/^(${SETTINGS_OF_IMAGE})=/d' .env && ${append}`
      : `(umask 077 && set -C && sed -E '/^(${SETTINGS_OF_IMAGE})=/d' ${shellWord(dotenv)} > .env && ${append})`
  return `# dash in containers: the server, the timer of its jobs, and Caddy with TLS (${join(root, 'docs/containers.md')})
cd ${shellWord(root)}
# The image has its own data folder, host and port; DASH_DOMAIN is the name readers use.
${settings}
${baseUrl === null ? `# Set DASH_DOMAIN, and DASH_BASE_URL to https:// and that name, in ${env}\n` : ''}docker compose up -d --build
docker compose run --rm server collect
`
}
