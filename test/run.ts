import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ledgerGaps } from './conformance/ledger.ts'
import { hasPostgres } from './support/postgres.ts'

/**
 * Runs the whole suite. Builds the executable that some tests start, and runs all tests. Then runs the tests
 * that use a store a second time, on PostgreSQL. The last line counts the passed and failed tests, for any CI
 * system.
 */
const run = async (
  command: string[],
  env: Record<string, string> = {},
  onText: (text: string) => void = () => {},
): Promise<number> => {
  const child = Bun.spawn(command, { stdout: 'inherit', stderr: 'pipe', env: { ...process.env, ...env } })
  for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
    process.stderr.write(chunk)
    onText(chunk)
  }
  return child.exited
}

/** Folders whose tests get their store from `freshStore`. These tests run on either engine. */
const ON_BOTH = [
  ...['account', 'admin', 'app', 'audit', 'authorize', 'delivery', 'directory', 'federation'],
  ...['flows', 'http', 'isolation', 'links', 'mail', 'oauth', 'observability', 'operations'],
  ...['pages', 'reliability', 'seed', 'sessions', 'sign-in', 'storage', 'tokens', 'webhooks'],
]
/**
 * Tests that run on SQLite only: tests of SQLite's files, plans and locks, and tests that choose their
 * engines themselves.
 */
const SQLITE_ALONE = new Set([
  'operations/check',
  'reliability/backup',
  'reliability/clean-up',
  'reliability/clock',
  'reliability/copies',
  'reliability/disk',
  'reliability/kill',
  'reliability/power',
  'reliability/redemption',
  'reliability/rotation',
  'reliability/soak',
  'sessions/plans',
  'storage/backup',
  'storage/checkpoint',
  'storage/group-commit',
  'storage/index-check',
  'storage/lock',
  'storage/migrate',
  'storage/transfer',
  'storage/upgrade',
])

const onBoth = (): string[] =>
  [...new Bun.Glob(`{${ON_BOTH.join()}}/**/*.test.ts`).scanSync('test')]
    .filter(path => !SQLITE_ALONE.has(path.replace('.test.ts', '')))
    .sort()
    .map(path => `./test/${path}`)

const counts = { pass: 0, fail: 0, skip: 0 }
const failures: string[] = []
/** Matches a failed test and the output before its verdict. Both are printed again at the end of the run. */
const FAILURE = /(?:^(?!\((?:pass|fail|skip)\)).*\n){0,60}^\(fail\) .*$/gm
/**
 * Milliseconds for a test that sets no timeout: Bun's default of 5 s is too short for a browser on a busy
 * machine.
 */
const TIMEOUT = '30000'
/**
 * Two files run at once, because many tests wait for a browser, a server or a disk. Each of the two processes
 * keeps its modules and its PostgreSQL server between files. Otherwise each file would load and start them
 * again. A failed test is not repeated: a test that fails by chance has a fault.
 */
const PARALLEL = ['--parallel=2', '--no-isolate']
const reportFolder = mkdtempSync(join(tmpdir(), 'gatehouse-reports-'))
const reports: string[] = []
const test = async (args: string[], env?: Record<string, string>): Promise<number> => {
  let output = ''
  const report = join(reportFolder, `${reports.length}.xml`)
  reports.push(report)
  const reporter = ['--reporter=junit', `--reporter-outfile=${report}`]
  const code = await run(
    ['bun', 'test', '--timeout', TIMEOUT, ...PARALLEL, ...reporter, ...args],
    env,
    text => {
      output += text
    },
  )
  // The runner lists failed tests again at the end.
  const [told = ''] = output.split(/^\d+ tests? failed:$/m)
  failures.push(...(told.match(FAILURE) ?? []))
  for (const word of ['pass', 'fail', 'skip'] as const)
    counts[word] += Number(new RegExp(`^\\s*(\\d+) ${word}$`, 'm').exec(output.slice(-2_000))?.[1] ?? 0)
  return code
}

const testOnPostgres = async (): Promise<number> => {
  if (!hasPostgres()) {
    console.log('\nPostgreSQL is not installed (Debian: apt-get install postgresql): nothing was run on it.')
    return process.env.CI ? 1 : 0
  }
  console.log('\nOnce more, on PostgreSQL:')
  return test(onBoth(), { TEST_ENGINE: 'postgres' })
}

const built = await run(['bun', 'run', 'build'])
if (built !== 0) process.exit(built)

const args = process.argv.slice(2)
const codes = [await test(args), args.length > 0 ? 0 : await testOnPostgres()]
if (args.length === 0) {
  const gaps = await ledgerGaps(await Promise.all(reports.map(report => Bun.file(report).text())))
  counts.fail += gaps.length
  if (gaps.length > 0) codes.push(1)
  failures.push(...gaps)
}
if (failures.length > 0) console.log(`\n${failures.join('\n\n')}`)
const skipped = counts.skip > 0 ? `, ${counts.skip} skipped` : ''
console.log(`\n${counts.pass} passed, ${counts.fail} failed${skipped}`)
process.exit(codes.find(code => code !== 0) ?? 0)
