/** Tests a server with a full, faulty or slow disk while requests arrive all the time. */
import { Database } from 'bun:sqlite'
import { afterAll, expect } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tokenOf } from '#test/support/admin-calls.ts'
import { gatehouse, type Running, SECRET, serveExecutable, stop } from '#test/support/executable.ts'
import { remote } from '#test/support/remote.ts'
import { mountTmpfs } from '#test/support/tmpfs.ts'
import { bearer, claimsOf } from '#test/support/tokens.ts'
import { until } from '#test/support/until.ts'
import { faultyDisk, figure, LONG, testWithFaults } from './faults.ts'
import { percentile } from './percentile.ts'

const folders: string[] = []
afterAll(() => {
  for (const path of folders) rmSync(path, { recursive: true, force: true })
})
const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-disk-'))
  folders.push(path)
  return path
}
const form = { grant_type: 'client_credentials', client_id: 'gatehouse-admin', client_secret: SECRET }

/** Requests a token. The server writes an event for each token. */
const askToken = async (server: Running) => {
  const answer = await remote(server).call('/oauth/token', {
    method: 'POST',
    body: new URLSearchParams(form),
  })
  return {
    status: answer.status,
    retry: answer.headers.get('retry-after'),
    body: (await answer.json()) as any,
  }
}
/** Counts the issued tokens in the audit log. */
const recorded = (data_dir: string): number => {
  using db = new Database(join(data_dir, 'gatehouse.db'), { readonly: true })
  return Number(db.query("SELECT count(*) FROM events WHERE type = 'token.issued'").values()[0]?.[0])
}

/**
 * Makes a disk that can be filled and emptied. The disk is a small tmpfs if mounting is permitted. Otherwise
 * the disk is simulated.
 */
const smallDisk = async (dir: string) => {
  const remove = await mountTmpfs(dir, '12m')
  if (!remove) {
    const disk = await faultyDisk(dir)
    return {
      kind: 'a disk that says it is full',
      env: disk.env,
      fill: () => disk.set('full'),
      free: () => disk.set('none'),
      remove: async () => disk[Symbol.dispose](),
    }
  }
  const ballast = join(dir, 'ballast')
  const fill = (): void => {
    for (let size = 1 << 20; size >= 512; size >>= 1)
      for (;;)
        try {
          writeFileSync(ballast, Buffer.alloc(size), { flag: 'a' })
        } catch {
          break
        }
  }
  return {
    kind: 'a tmpfs of 12 MiB',
    env: {},
    fill,
    free: () => rmSync(ballast),
    remove,
  }
}

testWithFaults(
  'R-04 the disk is full and then freed: 503 with Retry-After, reads continue, and later writes too, without a restart',
  async () => {
    const dir = folder()
    const disk = await smallDisk(dir)
    try {
      await using server = await serveExecutable(disk.env, dir)
      const { call } = remote(server)
      const admin = await tokenOf(call, SECRET)
      const status = async (path: string) => (await call(path, { headers: bearer(admin) })).status
      disk.fill()
      await until(async () => (await askToken(server)).status === 503)
      let refused = 0
      for (let i = 0; i < 40; i++) {
        const { status: said, retry, body } = await askToken(server)
        expect([said, retry, body.error, body.access_token]).toEqual([
          503,
          '1',
          'temporarily_unavailable',
          undefined,
        ])
        refused++
        expect(await status('/.well-known/jwks.json')).toBe(200)
        expect(await status('/api/v1/admin/users')).toBe(200)
      }
      expect([await status('/healthz'), await status('/readyz')]).toEqual([200, 503])
      disk.free()
      const freed = performance.now()
      await until(async () => (await askToken(server)).status === 200)
      const recovered = Math.ceil(performance.now() - freed)
      expect(await status('/readyz')).toBe(200)
      expect(await stop(server)).toBe(0)
      expect(await gatehouse(['check'], { GATEHOUSE_DATA_DIR: dir })).toMatchObject({ code: 0 })
      figure(
        'R-04',
        `${disk.kind}: ${refused} writes answered 503 while reads went on; written again ${recovered} ms after it was freed`,
      )
    } finally {
      await disk.remove()
    }
  },
  60_000,
)

testWithFaults(
  'R-05 syncs and writes fail, the disk is read-only: no token is handed out that is not recorded',
  async () => {
    const dir = folder()
    using disk = await faultyDisk(dir)
    let server = await serveExecutable(disk.env, dir)
    await using _ = { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
    let issued = 0
    const rounds = LONG ? 60 : 9
    const ask = async () => {
      const { status, body } = await askToken(server)
      if (status === 200) issued++
      else expect([status, body.error]).toEqual([503, 'temporarily_unavailable'])
      return status
    }
    for (let round = 0; round < rounds; round++) {
      await Promise.all(Array.from({ length: 8 }, ask))
      disk.set((['failing sync', 'failing write', 'read-only'] as const)[round % 3] ?? 'none')
      expect(await Promise.all(Array.from({ length: 24 }, ask))).toEqual(Array(24).fill(503))
      expect((await remote(server).call('/.well-known/jwks.json')).status).toBe(200)
      if (round % 4 === 3) {
        // Simulates a crash of the machine.
        server.signal('SIGKILL')
        await server.exited
        disk.set('none')
        expect(recorded(dir)).toBeGreaterThanOrEqual(issued)
        server = await serveExecutable(disk.env, dir)
      }
      disk.set('none')
      await until(async () => (await ask()) === 200)
    }
    expect(await stop(server)).toBe(0)
    expect(recorded(dir)).toBeGreaterThanOrEqual(issued)
    expect(await gatehouse(['check'], { GATEHOUSE_DATA_DIR: dir })).toMatchObject({ code: 0 })
    figure('R-05', `${rounds} faults, ${issued} tokens handed out, ${recorded(dir)} recorded`)
  },
  120_000,
)

testWithFaults(
  'R-18 a slow disk: no write waits five seconds, every answer is right, and writes share the waits',
  async () => {
    const seconds = LONG ? 20 : 3
    for (const ms of [50, 200]) {
      const dir = folder()
      using disk = await faultyDisk(dir)
      await using server = await serveExecutable({ ...disk.env, GATEHOUSE_LOG_LEVEL: 'warn' }, dir)
      disk.set('slow sync', ms)
      // The first write creates the file of the write-ahead log, which takes several syncs.
      await askToken(server)
      const before = recorded(dir)
      const writes: number[] = []
      const reads: number[] = []
      const ends = performance.now() + seconds * 1_000
      const timed = async (times: number[], ask: () => Promise<unknown>): Promise<void> => {
        while (performance.now() < ends) {
          const began = performance.now()
          await ask()
          times.push(performance.now() - began)
        }
      }
      const ids = new Set<string>()
      const write = async () => {
        const { status, body } = await askToken(server)
        expect(status).toBe(200)
        ids.add(claimsOf(body.access_token).jti)
      }
      const read = async () => expect((await remote(server).call('/.well-known/jwks.json')).status).toBe(200)
      await Promise.all([...Array.from({ length: 32 }, () => timed(writes, write)), timed(reads, read)])
      disk.set('none')
      const longest = Math.max(...writes)
      expect(ids.size).toBe(writes.length)
      expect(recorded(dir) - before).toBe(writes.length)
      expect(longest).toBeLessThan(5_000)
      // The disk can make only half as many syncs in this time. Several writes therefore share a sync.
      expect(writes.length).toBeGreaterThan((seconds * 1_000 * 2) / ms)
      figure(
        'R-18',
        `syncs of ${ms} ms: ${Math.round(writes.length / seconds)} writes a second, p99 ${percentile(writes, 0.99).toFixed(0)} ms, longest ${longest.toFixed(0)} ms; key set p99 ${percentile(reads, 0.99).toFixed(0)} ms`,
      )
      expect(await stop(server)).toBe(0)
    }
  },
  120_000,
)
