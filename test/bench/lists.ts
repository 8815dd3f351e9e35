import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fill, HUGE, MIDDLE, small } from './fill.ts'
import { adminTokenOf, EXECUTABLE, startGatehouse } from './gatehouse.ts'
import { freshDirectory, removeDirectory, type ServerProcess } from './server-process.ts'
import { number, table } from './table.ts'

const USAGE = `bun test/bench/lists.ts [users] [events]

Fills a small database with 1,000 users and 10,000 events and a large one with the given numbers (1,000,000 and 10,000,000: some ten
minutes and 12 GB). Starts dist/gatehouse on each and prints what a page of a list costs: ms for the first page and for the second page.
A page may cost at most twice as much in the large database as in the small one.`

const sorts = ['created_at', 'username', 'email', 'last_login'].flatMap(sort => [
  `sort=${sort}`,
  `sort=${sort}&order=asc`,
])
const filters = [
  'enabled=true',
  'enabled=false',
  'email_verified=false',
  'enabled=false&email_verified=true',
  'role=user',
  'role=staff',
  'role=auditor',
  'role=user&enabled=false&sort=email',
]
const words = ['zoe abbott', 'zoe example', 'zoe z', 'z a']
const searches = ['example', 'zoe', 'zoe.abbott', 'zoe.abbott.1', 'qqqqq', 'z', 'ab', '~~', ...words]
const tenants = [HUGE, MIDDLE, small(51)]
const days = 'from=2025-07-01&to=2025-07-02'

/** Paths of list pages, below the path of the admin API. */
export const paths = [
  ...sorts.map(sort => `/users?${sort}`),
  ...filters.map(filter => `/users?${filter}`),
  ...tenants.flatMap(tenant =>
    ['', '&sort=username', '&enabled=false', '&role=user', '&search=zoe'].map(
      more => `/users?organization_id=${tenant}${more}`,
    ),
  ),
  ...searches.flatMap(term =>
    ['', '&sort=username&order=asc', '&sort=last_login'].map(
      more => `/users?search=${encodeURIComponent(term)}${more}`,
    ),
  ),
  '/users?search=zoe&enabled=false',
  '/users?search=example&role=admin',
  // `small1` matches some clients. `qqqqq` matches no client or role, so the search reads each row.
  ...['shop', 'small1', 'qqqqq'].map(term => `/clients?search=${term}`),
  `/clients?organization_id=${HUGE}&search=shop`,
  ...['user', 'auditor', 'qqqqq'].map(term => `/roles?search=${term}`),
  `/roles?organization_id=${HUGE}&search=audit`,
  '/events',
  '/events?order=asc',
  '/events?type=token.refreshed',
  '/events?type=client.created',
  '/events?actor_id=backend',
  '/events?ip_address=192.0.2.1',
  '/events?ip_address=198.51.7.7',
  `/events?${days}`,
  `/events?${days}&type=user.login`,
  '/events?actor_id=backend&type=client.created',
  '/events?type=token.refreshed&ip_address=192.0.2.1',
  ...tenants.flatMap(tenant =>
    ['', '&type=user.login', '&actor_id=backend'].map(more => `/events?organization_id=${tenant}${more}`),
  ),
]

interface Cost {
  first: number
  next: number | undefined
}

const ROUNDS = 15
const median = (times: number[]): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN

const costOf = async (server: ServerProcess, token: string, path: string): Promise<Cost> => {
  const ask = async (more = '') => {
    const began = performance.now()
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1/admin${path}${more}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const body = (await response.json()) as { pagination?: { next_cursor?: string } }
    if (!body.pagination) throw new Error(`${path}: ${response.status} ${JSON.stringify(body)}`)
    return { ms: performance.now() - began, cursor: body.pagination.next_cursor }
  }
  const repeat = async (more?: string) => {
    const times: number[] = []
    for (let i = 0; i < ROUNDS; i++) times.push((await ask(more)).ms)
    return median(times)
  }
  const { cursor } = await ask()
  const separator = path.includes('?') ? '&' : '?'
  return {
    first: await repeat(),
    next: (cursor && (await repeat(`${separator}cursor=${cursor}`))) || undefined,
  }
}

const measure = async (users: number, events: number): Promise<Cost[]> => {
  const directory = await freshDirectory()
  try {
    await (await startGatehouse(directory)).stop()
    process.stderr.write(`filling ${users} users, ${events} events …\n`)
    fill(join(directory, 'gatehouse.db'), users, events)
    const server = await startGatehouse(directory)
    process.stderr.write(`started in ${number(server.started_in)} ms\n`)
    try {
      const token = await adminTokenOf(server)
      const costs: Cost[] = []
      for (const path of paths) costs.push(await costOf(server, token, path))
      return costs
    } finally {
      await server.stop()
    }
  } finally {
    await removeDirectory(directory)
  }
}

if (import.meta.main) {
  const [users = 1_000_000, events = 10_000_000] = process.argv.slice(2).map(Number)
  if (!existsSync(EXECUTABLE) || Number.isNaN(users) || Number.isNaN(events)) {
    console.error(USAGE)
    process.exit(1)
  }
  const few = await measure(1000, 10_000)
  const many = await measure(users, events)
  const rows = paths.map((path, i) => {
    const [a, b] = [few[i], many[i]]
    const worst = Math.max((b?.first ?? 0) / (a?.first ?? 1), (b?.next ?? 0) / (a?.next ?? a?.first ?? 1))
    return [
      path,
      number(a?.first, 2),
      number(a?.next, 2),
      number(b?.first, 2),
      number(b?.next, 2),
      `${number(worst, 1)}${worst > 2 ? ' MISSED' : ''}`,
    ]
  })
  console.log(table(['ms', '1,000', 'next', String(users), 'next', 'ratio'], rows))
}
