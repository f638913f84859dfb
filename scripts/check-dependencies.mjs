/**
 * Holds every package of the lock file to scripts/dependency-rules.json, without the network: the licences of what the
 * product runs on, and versions known to be bad of everything. `npm run licences`, or with another lock file as argument.
 */
import { readFileSync } from 'node:fs'

const read = (path) => JSON.parse(readFileSync(path, 'utf8'))
const { licences, exceptions, knownBad } = read(new URL('dependency-rules.json', import.meta.url))
const lock = read(process.argv[2] ?? new URL('../package-lock.json', import.meta.url))

const packages = Object.entries(lock.packages)
  .filter(([path]) => path !== '')
  .map(([path, { name = path.split('node_modules/').at(-1), version, license, dev }]) => ({
    name,
    version,
    licence: license ?? 'none',
    isRunOn: dev !== true,
  }))

/** `(MIT OR GPL-3.0)` may be taken under either, `MIT AND ISC` is under both. */
const isAllowed = (licence) =>
  licence
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((part) => licences.includes(part.trim())))

/** A name that ends with `*` stands for all that begin so. */
const isNamed = (pattern, name) =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern

const isException = ({ name, licence }) =>
  exceptions.some((exception) => isNamed(exception.name, name) && exception.licence === licence)

const partsOf = (version) => version.split('-')[0].split('.').map(Number)

function compare(left, right) {
  const [a, b] = [partsOf(left), partsOf(right)]
  const index = a.findIndex((part, at) => part !== b[at])
  return index === -1 ? 0 : a[index] - b[index]
}

/** A range is `1.2.3`, `<1.2.3`, or `1.2.3-4.5.6`, both ends included. */
function isIn(version, range) {
  if (range.startsWith('<')) return compare(version, range.slice(1)) < 0
  const [first, last = first] = range.split('-')
  return compare(version, first) >= 0 && compare(version, last) <= 0
}

const problems = packages.flatMap((each) => {
  const { name, version, licence, isRunOn } = each
  const bad = knownBad.filter((entry) => (entry.packages[name] ?? []).some((range) => isIn(version, range)))
  return [
    ...(isRunOn && !isAllowed(licence) && !isException(each)
      ? [`${name} ${version}: its licence is ${licence}, which is not allowed`]
      : []),
    ...bad.map(({ reason }) => `${name} ${version}: ${reason}`),
  ]
})
const unused = exceptions.filter(({ name }) => !packages.some((each) => isNamed(name, each.name)))
problems.push(...unused.map(({ name }) => `${name}: an exception is made for it, and it is not there`))

for (const problem of problems) console.error(problem)
if (problems.length === 0) {
  const run = packages.filter(({ isRunOn }) => isRunOn).length
  console.log(
    `${run} packages to run on have an allowed licence; none of ${packages.length} is known to be bad`,
  )
}
process.exitCode = problems.length === 0 ? 0 : 1
