import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { fillExpired } from '#test/support/expired.ts'
import { connect } from './connection.ts'
import { fill } from './fill.ts'
import { createAt, EXECUTABLE, prepareGatehouse, startGatehouse } from './gatehouse.ts'
import { operations, passwordLogin, type Step } from './operations.ts'
import { freshDirectory } from './server-process.ts'
import { number, print, table } from './table.ts'
import { stopTarget, type Target } from './target.ts'

/** Maximum ratio of the p99 of writes while a job runs to the p99 of writes without a job. */
const LIMIT = 3
/** Maximum milliseconds for which the event loop may be blocked. */
const HOLD_LIMIT = 50
/**
 * Number of connections that write, and the ms that each connection pauses between two writes. All
 * connections together use a third of a core.
 */
const WRITERS = 8
const PAUSE = 20
/**
 * ms between two requests for the key set. The server answers these requests without reading the disk, so a
 * long response time shows that the event loop was blocked.
 */
const PROBE = 5
const ROTATIONS = 10
const BROWSERS = 16
const WARM_UP = 3_000

export interface SteadySizes {
  /** Numbers of users and events in the database, which the backup copies. */
  users: number
  events: number
  /**
   * Number of expired codes. There are a tenth as many expired sessions, and a tenth as many sessions of a
   * deleted organization.
   */
  expired: number
  /** Number of users in the seed file. */
  applied: number
  /** Milliseconds of the measurement without a job. */
  quiet: number
}

interface Times {
  seconds: number
  writes: number[]
  probes: number[]
}

/** Returns a percentile of the values. A `share` of 0.99 gives the p99. */
const percentile = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(Math.floor(values.length * share), values.length - 1)] ??
  Number.NaN

/**
 * Runs `job` while the writes and the probe are repeated with pauses. Returns the seconds of the job, and the
 * milliseconds of each write and of each probe.
 */
const beside = async (writes: Step[], probe: Step, job: () => Promise<unknown>): Promise<Times> => {
  const times: Times = { seconds: 0, writes: [], probes: [] }
  let over = false
  const repeat = async (step: Step, pause: number, into: number[]): Promise<void> => {
    while (!over) {
      const began = performance.now()
      await step()
      into.push(performance.now() - began)
      await Bun.sleep(pause)
    }
  }
  const running = [
    ...writes.map(step => repeat(step, PAUSE, times.writes)),
    repeat(probe, PROBE, times.probes),
  ]
  const began = performance.now()
  try {
    await Promise.race([job(), ...running])
  } finally {
    times.seconds = (performance.now() - began) / 1_000
    over = true
    await Promise.all(running)
  }
  return times
}

const command = async (directory: string, ...args: string[]): Promise<void> => {
  const child = Bun.spawn([EXECUTABLE, ...args], {
    env: { GATEHOUSE_DATA_DIR: directory },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const said = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(`gatehouse ${args.join(' ')}: ${said}`)
}

const seedOf = (users: number): string =>
  JSON.stringify({
    users: Array.from({ length: users }, (_, i) => ({
      username: `applied${i}`,
      email: `applied${i}@example.com`,
      roles: ['user'],
    })),
  })

/** Returns the number of rows that the clean-up has not removed yet. */
const left = (directory: string): number => {
  using db = new Database(join(directory, 'gatehouse.db'), { readonly: true })
  const counts = db.query(
    `SELECT (SELECT count(*) FROM authorization_codes WHERE expires_at < 1e9) +
      (SELECT count(*) FROM purges WHERE kind = 'organization')`,
  )
  return Number(counts.values()[0]?.[0])
}

/** Waits until the next round of housekeeping has begun to remove rows. A round begins once a minute. */
const begun = async (directory: string): Promise<void> => {
  for (const all = left(directory); left(directory) === all; ) await Bun.sleep(50)
}

const cleaned = async (directory: string): Promise<void> => {
  while (left(directory) > 0) await Bun.sleep(250)
}

const row = (name: string, { seconds, writes, probes }: Times, quiet: Times): string[] => {
  const p99 = percentile(writes, 0.99)
  const ratio = p99 / percentile(quiet.writes, 0.99)
  const hold = Math.max(...probes)
  const verdict = (isMissed: boolean) => (isMissed ? ' MISSED' : ' ok')
  return [
    name,
    number(seconds, 1),
    String(writes.length),
    number(percentile(writes, 0.5), 1),
    number(p99, 1),
    `${number(ratio, 1)}${verdict(ratio > LIMIT)}`,
    number(Math.max(...writes)),
    number(percentile(probes, 0.99), 1),
    `${number(hold)}${verdict(hold > HOLD_LIMIT)}`,
  ]
}

/** Runs `use` with writers and a probe. Each has a connection of its own. */
const withLoad = async <T>(target: Target, use: (writes: Step[], probe: Step) => Promise<T>): Promise<T> => {
  const named = (name: string) => operations.find(each => each.name === name)
  const opened = await Promise.all(Array.from({ length: WRITERS + 1 }, () => connect(target.process.port)))
  try {
    const steps = await Promise.all(
      opened.map((connection, i) => named(i === 0 ? 'key set' : 'refresh')?.prepare(target, connection)),
    )
    const [probe, ...writes] = steps.filter(step => step !== undefined)
    if (!probe) throw new Error('No operation is named `key set` or `refresh`.')
    return await use(writes, probe)
  } finally {
    for (const connection of opened) connection.close()
  }
}

/** Signs in from many browsers for `ms`, as fast as the server allows. */
const storm = async (target: Target, ms: number): Promise<void> => {
  const end = performance.now() + ms
  const logIn = async (): Promise<void> => {
    const connection = await connect(target.process.port)
    const run = passwordLogin(target, connection)
    while (performance.now() < end) await run()
    connection.close()
  }
  await Promise.all(Array.from({ length: BROWSERS }, logIn))
}

/** Requests a change from the admin API. */
const change =
  ({ process, admin_token }: Target) =>
  async (method: string, path: string): Promise<void> => {
    const { ok, status } = await fetch(`http://localhost:${process.port}/api/v1/admin${path}`, {
      method,
      headers: { authorization: `Bearer ${admin_token}` },
    })
    if (!ok) throw new Error(`${method} ${path}: ${status}`)
  }

interface Job {
  name: string
  /** Prepares the job before its load begins. */
  before?(): Promise<void>
  run(): Promise<unknown>
}

/** The jobs, in the order in which they run on one database. */
const jobsOf = (target: Target, { applied, expired, quiet }: SteadySizes): Job[] => {
  const { directory } = target.process
  const ask = change(target)
  const seed = join(directory, 'seed.yaml')
  const rotate = async (): Promise<void> => {
    for (let i = 0; i < ROTATIONS; i++) {
      await ask('POST', '/keys/rotate')
      await Bun.sleep(300)
    }
  }
  const expire = async (): Promise<void> => {
    const create = createAt(target.process, target.admin_token ?? '')
    const { id = '' } = await create('/organizations', { name: 'gone', slug: 'gone' })
    fillExpired(join(directory, 'gatehouse.db'), expired, id)
    await ask('DELETE', `/organizations/${id}`)
    await begun(directory)
  }
  return [
    { name: 'nothing', run: () => Bun.sleep(quiet) },
    { name: `${ROTATIONS} key rotations`, run: rotate },
    { name: 'backup', run: () => command(directory, 'backup', join(directory, 'copy.db')) },
    {
      name: `apply of ${applied} users`,
      before: async () => void (await Bun.write(seed, seedOf(applied))),
      run: () => command(directory, 'apply', seed),
    },
    { name: 'login storm', run: () => storm(target, quiet) },
    { name: `clean-up of ${expired * 1.2} rows`, before: expire, run: () => cleaned(directory) },
  ]
}

/** Measures writes and the event loop while the server runs its jobs, one job after the other. */
export const runSteady = async (sizes: SteadySizes): Promise<void> => {
  const directory = await freshDirectory()
  await (await startGatehouse(directory)).stop()
  process.stderr.write(`filling ${sizes.users} users, ${sizes.events} events …\n`)
  fill(join(directory, 'gatehouse.db'), sizes.users, sizes.events)
  const target = await prepareGatehouse(await startGatehouse(directory))
  try {
    const lines: string[][] = []
    let quiet: Times | undefined
    await withLoad(target, (writes, probe) => beside(writes, probe, () => Bun.sleep(WARM_UP)))
    for (const { name, before, run } of jobsOf(target, sizes)) {
      process.stderr.write(`${name} …\n`)
      await before?.()
      const times = await withLoad(target, (writes, probe) => beside(writes, probe, run))
      quiet ??= times
      lines.push(row(name, times, quiet))
    }
    const head = [
      'beside',
      's',
      'writes',
      'p50 ms',
      'p99',
      `ratio (limit ${LIMIT})`,
      'longest',
      'key set p99',
    ]
    print(`\n${table([...head, `hold (limit ${HOLD_LIMIT})`], lines)}`)
  } finally {
    await stopTarget(target)
  }
}
