import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { describe, expect, test } from 'vitest'
import { namedVariables } from '../../../../src/cli/settings/variables.ts'
import { dash, PROGRAM, temporaryFolder } from '../../../support/dash.ts'

interface Result {
  user: string
  written: boolean
  dataDir: string
  units: { name: string; text: string }[]
  crontab: string
  containers?: string
  unitFiles: string[]
}

const init = async (args: string[], cwd: string): Promise<Result> => {
  const { code, stdout, stderr } = await dash(['init', '--json', ...args], { cwd })
  expect({ code, stderr }).toMatchObject({ code: 0 })
  return JSON.parse(stdout) as Result
}

/** The settings in the env file of a folder, and the session secret apart. */
function envIn(folder: string): { settings: NodeJS.Dict<string>; secret: string } {
  const { DASH_SESSION_SECRET: secret = '', ...settings } = parseEnv(
    readFileSync(join(folder, '.env'), 'utf8'),
  )
  return { settings, secret }
}

const servicesOf = ({ units }: Result) => units.filter(({ name }) => name.endsWith('.service'))

const linesOf = (crontab: string): string[] =>
  crontab.split('\n').filter((line) => !line.startsWith('#') && line !== '')

describe('the env file', () => {
  test('the env file is private, names every variable, and sets the chosen ones and a new secret', async () => {
    const [cwd, other] = [temporaryFolder(), temporaryFolder()]
    await init(['--port', '4000', '--base-url', 'https://dash.example'], cwd)
    const path = join(cwd, '.env')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const text = readFileSync(path, 'utf8')
    for (const { name } of namedVariables) expect(text).toMatch(new RegExp(`^#?${name}=`, 'm'))
    const { settings, secret } = envIn(cwd)
    expect(settings).toEqual({
      DASH_DATA_DIR: join(cwd, 'dash-data'),
      PORT: '4000',
      DASH_BASE_URL: 'https://dash.example',
    })
    expect(secret.length).toBeGreaterThan(32)
    await init([], other)
    expect(envIn(other).secret).not.toBe(secret)
  })

  test('values come from flags, then from the environment, for the data folder and the other prompted settings', async () => {
    const cwd = temporaryFolder()
    const env = { DASH_DATA_DIR: 'mine', PORT: '4000', HOST: '0.0.0.0' }
    const { stdout } = await dash(['init', '--json', '--port', '5000'], { cwd, env })
    expect(JSON.parse(stdout)).toMatchObject({ dataDir: join(cwd, 'mine') })
    expect(envIn(cwd).settings).toEqual({ DASH_DATA_DIR: join(cwd, 'mine'), PORT: '5000', HOST: '0.0.0.0' })
    expect(readdirSync(cwd).sort()).toEqual(['.env', 'mine'])
  })

  test('the program runs with the env file', async () => {
    const cwd = temporaryFolder()
    await init(['--data-dir', "it's here"], cwd)
    expect((await dash(['snapshot'], { cwd })).code).toBe(0)
    expect(readdirSync(join(cwd, "it's here"))).toContain('feed.db')
  })

  test('an existing env file or a dangling link is never overwritten', async () => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, '.env'), 'PORT=1\n')
    symlinkSync('/nowhere/at/all', join(cwd, 'link'))
    for (const args of [[], ['--dotenv', 'link'], ['--yes']]) {
      const { code, stderr } = await dash(['init', ...args], { cwd })
      expect(code).toBe(78)
      expect(stderr).toContain('already exists and is not overwritten')
    }
    expect(readFileSync(join(cwd, '.env'), 'utf8')).toBe('PORT=1\n')
    expect(readdirSync(cwd).sort()).toEqual(['.env', 'link'])
  })
})

describe('the units', () => {
  test('units start the program of this host at UTC times, hardened, with the env file as a credential', async () => {
    const cwd = temporaryFolder()
    const made = await init(['--user', 'keeper'], cwd)
    const jobs = ['publish-year', 'evaluate-models', 'verify-archive', 'collect']
    expect(made.units.map(({ name }) => name)).toEqual([
      'dash.service',
      ...jobs.flatMap((job) => [`dash-${job}.service`, `dash-${job}.timer`]),
    ])
    const timesOf = (job: string) =>
      made.units.find(({ name }) => name === `dash-${job}.timer`)?.text.match(/^OnCalendar=.*/gm)
    expect(timesOf('publish-year')).toEqual([
      'OnCalendar=*-*-* 00,01:10:00 UTC',
      'OnCalendar=*-*-* 00:40:00 UTC',
    ])
    expect(timesOf('collect')).toEqual([
      'OnCalendar=*-*-* 00,02,04,06,08,10,12,14,16,18,20,22:05:00 UTC',
      'OnCalendar=*-*-* 23:50:00 UTC',
    ])
    expect(timesOf('verify-archive')).toEqual(['OnCalendar=Sun *-*-* 04:30:00 UTC'])
    for (const { name, text } of servicesOf(made)) {
      const isWaiting = /^Wants=time-sync\.target\nAfter=time-sync\.target$/m.test(text)
      expect([name, isWaiting]).toEqual([name, name !== 'dash.service'])
      expect(text).toContain(`\nExecStart=${process.execPath} ${PROGRAM} `)
      for (const line of [
        'User=keeper',
        `LoadCredential=env:${cwd}/.env`,
        `ReadWritePaths=${cwd}/dash-data`,
        'NoNewPrivileges=yes',
        'ProtectSystem=strict',
        'CapabilityBoundingSet=',
      ])
        expect(text.split('\n')).toContain(line)
    }
  })

  test.each([
    ['/srv/the key/log.key', 'yes', '"/srv/the key"'],
    ['/home/keeper/log.key', 'read-only', '/home/keeper'],
  ])(
    'the unit that publishes may write to the folder of the key %s, and no other unit may',
    async (key, home, folder) => {
      // Units must be able to read the program and Node wherever these are.
      const isInstalledInHome = [process.cwd(), process.execPath].some((path) =>
        /^\/(?:home|root|run\/user)\//.test(path),
      )
      const cwd = temporaryFolder()
      writeFileSync(join(cwd, '.env'), `DASH_DATA_DIR=/srv/data\nDASH_LOG_KEY_FILE="${key}"\n`)
      for (const { name, text } of servicesOf(await init(['--no-env'], cwd))) {
        const written = [...text.matchAll(/^ReadWritePaths=(.*)$/gm)].map(([, path]) => path)
        const mounts = [...text.matchAll(/^RequiresMountsFor=(.*)$/gm)].map(([, path]) => path)
        const expected = name === 'dash-publish-year.service' ? ['/srv/data', folder] : ['/srv/data']
        expect([name, written, mounts]).toEqual([name, expected, expected])
        expect(text).toContain(`\nProtectHome=${isInstalledInHome ? 'read-only' : home}\n`)
      }
    },
  )

  test('units may write to the whole data folder where only the objects are in it', async () => {
    const cwd = temporaryFolder()
    const databases = ['LEDGER', 'FEED', 'STATE'].map((name) => `DASH_${name}_URL=file:/srv/db/${name}.db\n`)
    writeFileSync(join(cwd, '.env'), `DASH_DATA_DIR=/srv/data\n${databases.join('')}`)
    for (const { name, text } of servicesOf(await init(['--no-env'], cwd)))
      expect([name, text.match(/^ReadWritePaths=.*/gm)]).toEqual([
        name,
        ['ReadWritePaths=/srv/data', 'ReadWritePaths=/srv/db'],
      ])
  })

  test('units can be written to a folder for an existing env file, and never overwrite others', async () => {
    const cwd = temporaryFolder()
    mkdirSync(join(cwd, 'units'))
    await init([], cwd)
    const before = readFileSync(join(cwd, '.env'), 'utf8')
    const { written, unitFiles, units } = await init(['--no-env', '--write-units', 'units'], cwd)
    expect(written).toBe(false)
    expect(readFileSync(join(cwd, '.env'), 'utf8')).toBe(before)
    expect(unitFiles.map((path) => readFileSync(path, 'utf8'))).toEqual(units.map(({ text }) => text))
    const again = await dash(['init', '--no-env', '--write-units', 'units'], { cwd })
    expect(again.code).toBe(78)
    const other = temporaryFolder()
    const refused = await dash(['init', '--write-units', join(cwd, 'units')], { cwd: other })
    expect(refused.code).toBe(78)
    expect(existsSync(join(other, '.env'))).toBe(false)
  })
})

describe('the crontab', () => {
  /** Runs the command of a crontab line as cron does: with its shell, its PATH, and its meaning of percent signs. */
  const runLine = (line: string, now: string): string => {
    const command = line.split(' ').slice(5).join(' ').replaceAll('\\%', '%')
    const env = { PATH: '/usr/bin:/bin', HOME: '/', NOW: now }
    const clock = 'date() { command date -d "$NOW" "$@"; }\n'
    return execFileSync('/bin/sh', ['-c', clock + command], { env, encoding: 'utf8' })
  }

  test('a crontab has UTC times on a UTC host, and absolute paths of the program', async () => {
    const { crontab } = await init([], temporaryFolder())
    const lines = linesOf(crontab)
    expect(lines.map((line) => line.split(' ').slice(0, 5).join(' '))).toEqual([
      '10 0,1 * * *',
      '40 0 * * *',
      '17 3 * * *',
      '30 4 * * 0',
      '5 0,2,4,6,8,10,12,14,16,18,20,22 * * *',
      '50 23 * * *',
    ])
    for (const line of lines) expect(line).toContain(`&& ${process.execPath} ${PROGRAM} `)
  })

  test('a crontab in another time zone checks the clock, so that each line works at its UTC time only', async () => {
    const cwd = temporaryFolder()
    const env = { TZ: 'Asia/Kathmandu' }
    const { stdout } = await dash(['init', '--json', '--data-dir', '100% mine'], { cwd, env })
    const lines = linesOf((JSON.parse(stdout) as Result).crontab)
    expect(lines).toHaveLength(4)
    const [publish = '', , verify = '', collect = ''] = lines
    expect(publish).toMatch(/^10,25,40,55 \* \* \* \* /)
    expect(collect).toMatch(/^5,20,35,50 \* \* \* \* /)
    const worksAt = (line: string, now: string): boolean =>
      runLine(line.replace(/ cd .*/, ' echo worked'), now) === 'worked\n'
    expect(worksAt(publish, '2026-03-01T00:40:30Z')).toBe(true)
    expect(worksAt(publish, '2026-03-01T02:40:30Z')).toBe(false)
    expect(worksAt(verify, '2026-03-01T04:30:00Z')).toBe(true)
    expect(worksAt(verify, '2026-03-02T04:30:00Z')).toBe(false)
    const times = ['00:05', '14:05', '22:05', '23:50', '01:05', '14:20', '23:05', '22:50']
    expect(times.filter((time) => worksAt(collect, `2026-03-01T${time}:10Z`))).toEqual(times.slice(0, 4))
  })

  test('a crontab line runs with the PATH of cron', async () => {
    const cwd = join(temporaryFolder(), "it's 100% mine")
    mkdirSync(cwd)
    const { crontab } = await init([], cwd)
    const verify = crontab.split('\n').find((line) => line.includes('verify-archive')) ?? ''
    const snapshot = verify.replace('verify-archive --quiet', 'snapshot --json')
    expect(runLine(snapshot, '2026-03-01')).toContain('"job":"snapshot"')
  })
})

describe('--print', () => {
  test('--print selects units or crontab; without it both are printed, and no secret', async () => {
    const cwd = temporaryFolder()
    const { stdout: both, stderr } = await dash(['init'], { cwd })
    expect(envIn(cwd).secret).not.toBe('')
    expect(both + stderr).not.toContain(envIn(cwd).secret)
    const heads = [/^# --- \/etc\/systemd\/system\/dash\.service$/m, /for the crontab of .* \(crontab -e\)/m]
    const shown = (text: string) => heads.map((head) => head.test(text))
    expect(shown(both)).toEqual([true, true])
    expect(both).toContain('dash-publish-year.timer')
    const [systemd = '', cron = '', nothing] = await Promise.all(
      ['systemd', 'cron', 'nothing'].map(async (kind) => {
        const printed = await dash(['init', '--print', kind], { cwd: temporaryFolder() })
        expect(printed.code).toBe(0)
        return printed.stdout
      }),
    )
    expect([shown(systemd), shown(cron)]).toEqual([
      [true, false],
      [false, true],
    ])
    expect(systemd).not.toContain('crontab')
    expect(cron).not.toContain('systemd')
    expect(nothing).toBe('')
  })

  test('--print containers shows how to run the shipped compose file, with an env file for the image', async () => {
    const cwd = temporaryFolder()
    const flags = ['--print', 'containers', '--port', '4000', '--base-url', 'https://dash.example/']
    const { containers = '', units, crontab } = await init(flags, cwd)
    expect([units, crontab]).toEqual([[], ''])
    const root = join(PROGRAM, '../../..')
    expect(existsSync(join(root, 'compose.yaml'))).toBe(true)
    expect(containers.split('\n')).toContain(`cd ${root}`)
    expect(containers.split('\n')).toContain('docker compose up -d --build')
    // The line that writes the env file, run in a folder other than the package's.
    const line = containers.split('\n').find((each) => each.includes('sed ')) ?? ''
    const target = temporaryFolder()
    execFileSync('/bin/sh', ['-c', line], { cwd: target })
    const settings = { DASH_BASE_URL: 'https://dash.example/', DASH_DOMAIN: 'dash.example' }
    expect(envIn(target)).toEqual({ settings, secret: envIn(cwd).secret })
    expect(statSync(join(target, '.env')).mode & 0o777).toBe(0o600)
  })
})

/** Runs a program like containers with `--user`: as a number for which the system has no name. */
const NAMELESS = ['setpriv', '--reuid', '12345', '--regid', '12345', '--clear-groups']

test.skipIf(process.getuid?.() !== 0)('a user without a name is called by its number', async () => {
  const cwd = temporaryFolder()
  chmodSync(cwd, 0o777)
  const written = await dash(['init', '--json'], { cwd, wrapper: NAMELESS })
  expect(written.code).toBe(0)
  expect(written.stderr).not.toContain('chown')
  expect(written.stderr).toContain('check everything with ')
  const { user, units } = JSON.parse(written.stdout) as Result
  expect(user).toBe('12345')
  expect(units[0]?.text).toContain('User=12345\n')
  chownSync(join(cwd, 'dash-data'), 0, 0)
  const looked = await dash(['doctor', '--json', '--offline'], { cwd, wrapper: NAMELESS })
  expect(looked.code).toBe(74)
  expect(looked.stdout).toContain('cannot be written by 12345')
  expect(looked.stdout).toContain(`chown -R 12345 ${join(cwd, 'dash-data')}`)
})

test.skipIf(process.getuid?.() !== 0)(
  'after a run of root, doctor names one command for all objects',
  async () => {
    const data = temporaryFolder()
    const objects = join(data, 'objects')
    mkdirSync(join(objects, 'heads'), { recursive: true, mode: 0o700 })
    for (const folder of [data, objects]) chownSync(folder, 12345, 12345)
    const looked = await dash(['doctor', '--offline', '--data-dir', data], { wrapper: NAMELESS })
    expect(looked.stdout).toContain(`run as its owner, or chown -R 12345 ${objects}\n`)
  },
)
