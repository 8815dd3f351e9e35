import { Database } from 'bun:sqlite'
import { afterAll, expect } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { openSqlite } from '#src/storage/sqlite/store.ts'
import { temporaryDatabase } from '#test/support/store.ts'
import { faultsLibrary, figure, LONG, testWithFaults } from './faults.ts'

// The files are in memory, where a sync has no effect. The test derives the state after a power cut from the
// recorded log.
const root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'gatehouse-power-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/**
 * Number of writes of the writer. It is enough for a checkpoint that copies the write-ahead log and restarts
 * the log.
 */
const WRITES = LONG ? 8_000 : 4_000
const CUTS = LONG ? 400 : 16
const SECTOR = 512

interface Entry {
  kind: string
  path: string
  offset: number
  data: Buffer
}

/** Returns the operations that faults.c recorded, in order. */
const readLog = (path: string): Entry[] => {
  const log = readFileSync(path)
  const entries: Entry[] = []
  for (let at = 0; at < log.length; ) {
    const name = log.readUInt16LE(at + 1)
    const head = at + 3 + name
    const length = log.readUInt32LE(head + 8)
    if (head + 12 + length > log.length) break
    entries.push({
      kind: String.fromCharCode(log[at] ?? 0),
      path: log.toString('utf8', at + 3, head),
      offset: Number(log.readBigUInt64LE(head)),
      data: log.subarray(head + 12, head + 12 + length),
    })
    at = head + 12 + length
  }
  return entries
}

/** Pseudo-random numbers, the same in each run. */
const random = (seed: number) => () => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed / 2 ** 32
}

class File {
  synced: Buffer
  size: number
  waiting: Entry[] = []
  /**
   * False for a new file until its directory is synced. Before this sync, a power cut would remove the file.
   */
  named: boolean
  constructor(content: Buffer, named: boolean) {
    this.synced = content
    this.size = content.length
    this.named = named
  }
  sync(): void {
    for (const entry of this.waiting) this.apply(entry, () => true)
    this.waiting = []
  }
  private apply({ kind, offset, data }: Entry, reaches: (sector: number) => boolean): void {
    const end = kind === 'T' ? offset : offset + data.length
    if (end > this.synced.length)
      this.synced = Buffer.concat([this.synced, Buffer.alloc(end - this.synced.length + (1 << 20))])
    if (kind === 'T') {
      if (end < this.size) this.synced.fill(0, end, this.size)
      this.size = end
      return
    }
    for (let at = 0; at < data.length; at += SECTOR)
      if (reaches(at)) data.copy(this.synced, offset + at, at, Math.min(at + SECTOR, data.length))
    this.size = Math.max(this.size, end)
  }
  /** Returns the content after a power cut: all synced data, and a random part of the other sectors. */
  left(reaches: () => boolean): Buffer {
    const copy = new File(Buffer.from(this.synced.subarray(0, this.size)), true)
    for (const entry of this.waiting) if (entry.kind === 'W' || reaches()) copy.apply(entry, reaches)
    return copy.synced.subarray(0, copy.size)
  }
}

/** Runs a writer while faults.c records the disk operations. Returns the log and the initial database. */
const recordWrites = async (durable: boolean) => {
  const dir = join(root, `disk-${durable}`)
  mkdirSync(dir)
  const path = join(dir, 'gatehouse.db')
  copyFileSync(await temporaryDatabase(), path)
  const first = readFileSync(path)
  const library = await faultsLibrary()
  const log = join(root, `log-${durable}`)
  const child = Bun.spawn(
    ['bun', join(import.meta.dir, 'power-writer.ts'), path, library, String(WRITES), String(durable)],
    {
      env: { ...process.env, LD_PRELOAD: library, FAULTS_DIR: dir, FAULTS_LOG: log },
      stderr: 'inherit',
    },
  )
  await child.exited
  return { dir, path, first, entries: readLog(log) }
}

/**
 * Cuts the power at `cuts` places of the log. Returns the acknowledged writes that were lost, the faults of
 * the databases after the cuts, and counts for the report.
 */
const cutPower = async (durable: boolean, cuts: number) => {
  const { dir, path, first, entries } = await recordWrites(durable)
  const next = random(1)
  const places = Array.from({ length: cuts }, () => Math.floor(next() * entries.length)).sort((a, b) => a - b)
  const files = new Map([[path, new File(first, true)]])
  const answered: string[] = []
  const lost: string[] = []
  const broken: string[] = []
  let at = 0
  for (const [n, place] of places.entries()) {
    for (; at < place; at++) {
      const entry = entries[at] as Entry
      if (entry.kind === 'A') answered.push(entry.data.toString())
      else if (entry.kind === 'C') files.set(entry.path, new File(Buffer.alloc(0), false))
      else if (entry.kind !== 'S') files.get(entry.path)?.waiting.push(entry)
      else if (entry.path === dir) for (const file of files.values()) file.named = true
      else files.get(entry.path)?.sync()
    }
    // Keeps none, all or a random part of the data that was not synced.
    const share = [0, 1, 0.5, 0.9][n % 4] ?? 0
    const after = join(root, `${durable}-${n}`)
    mkdirSync(after)
    for (const [name, file] of files)
      if ((file.named || next() < share) && !name.endsWith('-shm'))
        writeFileSync(
          join(after, basename(name)),
          file.left(() => next() < share),
        )
    const found = await namesIn(join(after, 'gatehouse.db')).catch(error => {
      broken.push(`${n}: ${error.message}`)
      return new Set<string>()
    })
    lost.push(...answered.filter(name => !found.has(name)))
    for (const name of found)
      if (!found.has(name.endsWith('.twin') ? name.slice(0, -5) : `${name}.twin`)) broken.push(name)
    rmSync(after, { recursive: true })
  }
  rmSync(dirname(path), { recursive: true })
  // A sync of the database file shows that a checkpoint took place.
  const copied = entries.some(({ kind, path: name }) => kind === 'S' && name === path)
  return { lost, broken, copied, answered: answered.length, entries: entries.length }
}

/** Opens the database as a start does, checks every page, and returns the names of the stored settings. */
const namesIn = async (path: string): Promise<Set<string>> => {
  const store = await openSqlite({ path })
  const rows = await store.read(q => q.select({ name: q.tables.settings.name }).from(q.tables.settings))
  await store.close()
  using db = new Database(path)
  const [[verdict] = []] = db.query('PRAGMA integrity_check').values()
  if (verdict !== 'ok') throw new Error(String(verdict))
  return new Set(rows.map(({ name }) => name))
}

testWithFaults(
  'R-03 the power fails at any moment: what was answered is there, nothing is there by half, no page is damaged',
  async () => {
    const { lost, broken, copied, answered, entries } = await cutPower(true, CUTS)
    expect({ lost, broken, copied }).toEqual({ lost: [], broken: [], copied: true })
    expect(answered).toBeGreaterThan(WRITES / 2)
    figure(
      'R-03',
      `${CUTS} power cuts in ${entries} recorded writes and syncs, up to ${answered} answers: none lost`,
    )
    // This part shows that the test detects losses. A writer that does not sync loses writes or breaks the
    // database.
    const careless = await cutPower(false, 8)
    expect(careless.lost.length + careless.broken.length).toBeGreaterThan(0)
  },
  LONG ? 1_200_000 : 120_000,
)
