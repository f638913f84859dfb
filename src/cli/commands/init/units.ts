import { pathToFileURL } from 'node:url'
import { JOBS, scheduleLines } from './schedule.ts'
import type { Installation, Job } from './schedule.ts'

/** One file for systemd. */
export interface Unit {
  name: string
  text: string
}

/** Seconds beyond the drain until a server that does not end is killed. */
const STOP_MARGIN_SECONDS = 20

/**
 * The systemd units of an installation: the server, and each job with its timer. The env file is handed over as a
 * credential: the manager reads it, so that it may belong to root, and nobody else can (docs/deployment.md).
 */
export function systemdUnits(installation: Installation): Unit[] {
  return [
    { name: 'dash.service', text: serverUnit(installation) },
    ...JOBS.flatMap((job) => [
      { name: `dash-${job.name}.service`, text: jobUnit(installation, job) },
      { name: `dash-${job.name}.timer`, text: timerUnit(job) },
    ]),
  ]
}

function serverUnit(installation: Installation): string {
  return `[Unit]
Description=dash: the interfaces, the page and the documentation
${dependencies(installation)}

[Service]
Type=exec
${execution(installation, ['serve'])}
Restart=on-failure
RestartSec=5
# What only a person can mend: the command line, the configuration.
RestartPreventExitStatus=64 78
TimeoutStopSec=${installation.drainSeconds + STOP_MARGIN_SECONDS}
${hardening(installation, installation.written.map(word))}

[Install]
WantedBy=multi-user.target
`
}

function jobUnit(installation: Installation, { meaning, words }: Job): string {
  const { written, textfileDir } = installation
  // One that is missing costs the metrics and not the run.
  const writable = [...written.map(word), ...(textfileDir === null ? [] : [word(`-${textfileDir}`)])]
  return `[Unit]
Description=dash: ${meaning}
${dependencies(installation)}

[Service]
Type=oneshot
${execution(installation, words)}
# Another run is at work on it.
SuccessExitStatus=75
Nice=10
${hardening(installation, writable)}
`
}

function timerUnit(job: Job): string {
  const { meaning, weekday } = job
  const days = weekday === null ? '*-*-*' : `${weekday} *-*-*`
  return `[Unit]
Description=dash: ${meaning}

[Timer]
${scheduleLines(job)
  .map(({ hours, minute }) => `OnCalendar=${days} ${hours.join(',')}:${minute}:00 UTC`)
  .join('\n')}
AccuracySec=1s
# What was missed while the machine was off is made up for when it is on again.
Persistent=true

[Install]
WantedBy=timers.target
`
}

function dependencies({ root, written }: Installation): string {
  const mounts = written.map((folder) => `\nRequiresMountsFor=${word(folder)}`).join('')
  return `Documentation=${specifiers(pathToFileURL(`${root}/docs/deployment.md`).href)}
Wants=network-online.target
After=network-online.target${mounts}`
}

function execution({ node, program, folder, dotenv, user }: Installation, words: readonly string[]): string {
  const command = [node, program, ...words, '--dotenv'].map(commandWord).join(' ')
  return `User=${user}
WorkingDirectory=${specifiers(folder)}
LoadCredential=env:${specifiers(dotenv)}
# A secret in a file of its own instead of in the env file, here the key of the chat's provider:
#LoadCredential=openai-api-key:/etc/dash/openai-api-key
#Environment=OPENAI_API_KEY_FILE=%d/openai-api-key
ExecStart=${command} \${CREDENTIALS_DIRECTORY}/env`
}

/** @param writable words: the paths that are written, after a `-` where one may be missing */
function hardening(installation: Installation, writable: readonly string[]): string {
  return `UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=${isBelow(installation, HOMES) ? 'read-only' : 'yes'}
${writable.map((path) => `ReadWritePaths=${path}\n`).join('')}PrivateTmp=${isBelow(installation, ['/tmp', '/var/tmp']) ? 'no' : 'yes'}
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM`
}

const HOMES = ['/home', '/root', '/run/user']

/** True when anything of the installation lies below one of these folders, which would then be hidden from it. */
function isBelow(
  { node, program, folder, root, written, textfileDir }: Installation,
  folders: readonly string[],
): boolean {
  return [node, program, folder, root, ...written, textfileDir ?? root].some((path) =>
    folders.some((each) => path === each || path.startsWith(`${each}/`)),
  )
}

/** A value that runs to the end of its line; only specifiers have to be escaped. */
function specifiers(text: string): string {
  return text.replaceAll('%', '%%')
}

/** A word of a list. */
function word(text: string): string {
  return /^[\w./:@+=,-]+$/.test(text)
    ? text
    : `"${specifiers(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

/** A word of a command line, where variables are replaced too. */
function commandWord(text: string): string {
  return word(text).replaceAll('$', '$$$$')
}
