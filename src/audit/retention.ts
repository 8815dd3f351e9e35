import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Context } from '#src/context.ts'
import { iso } from '#src/lib/text.ts'
import { BATCH } from '#src/storage/batches.ts'
import { sync } from '#src/storage/data-dir.ts'
import { type EventRow, eventsBefore, removeEvents } from './store.ts'

/** An event as the admin API shows it, as a line of JSON. */
export const eventLine = ({ seq: _, subject_id: __, mac: ___, timestamp, ...event }: EventRow): string =>
  `${JSON.stringify({ ...event, timestamp: iso(timestamp) })}\n`

/** Longer than any line. */
const TAIL = 65_536

/** The size up to the end of the last whole line. A process that died amid one has left a part of it. */
const wholeSize = (file: number): number => {
  const { size } = fstatSync(file)
  const tail = Buffer.alloc(Math.min(size, TAIL))
  readSync(file, tail, 0, tail.length, size - tail.length)
  return size - tail.length + tail.lastIndexOf('\n') + 1
}

/** All of the text, or nothing of it: a disk that fills up takes a part, and says so only when it is asked again. */
const append = (path: string, text: string): void => {
  const file = openSync(path, 'a+', 0o600)
  try {
    const size = wholeSize(file)
    ftruncateSync(file, size)
    try {
      const bytes = Buffer.from(text)
      for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written)
      fsyncSync(file)
    } catch (error) {
      ftruncateSync(file, size)
      throw error
    }
  } finally {
    closeSync(file)
  }
}

/** Appends events to the files of their months; they are on the disk when it returns. */
const keep = (folder: string, events: EventRow[]): void => {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const [month, rows] of Map.groupBy(events, ({ timestamp }) => iso(timestamp).slice(0, 7))) {
    const path = join(folder, `${month}.jsonl`)
    const isNew = !existsSync(path)
    append(path, rows.map(eventLine).join(''))
    if (isNew) sync(folder)
  }
}

/**
 * Moves events older than `event_retention`, if that is set, from the database into files of the data directory
 * (`events/2026-01.jsonl`, JSON Lines), in writes of a bounded size; says how many. None is removed that is not in a file: where
 * nothing can be written it throws, and they stay. A process that dies in between leaves some in both, by the same id.
 */
export const sweepEvents = async ({
  config,
  clock,
  store,
}: Pick<Context, 'config' | 'clock' | 'store'>): Promise<number> => {
  if (config.event_retention === undefined) return 0
  const before = clock.now() - config.event_retention
  for (let moved = 0; ; ) {
    const events = await store.read(q => eventsBefore(q, before, BATCH))
    if (events.length === 0) return moved
    keep(join(config.data_dir, 'events'), events)
    await store.calm()
    moved += await store.write(tx => removeEvents(tx, events))
  }
}
