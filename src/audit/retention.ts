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
import type { Core } from '#src/context.ts'
import { iso } from '#src/lib/text.ts'
import { DELETE_BATCH } from '#src/storage/batches.ts'
import { sync } from '#src/storage/data-dir.ts'
import { type EventRow, eventsBefore, removeEvents } from './store.ts'

/** Returns an event as a line of JSON, with the fields of the admin API. */
export const eventLine = ({ seq: _, subject_id: __, mac: ___, timestamp, ...event }: EventRow): string =>
  `${JSON.stringify({ ...event, timestamp: iso(timestamp) })}\n`

/** Bytes of a file that are read at a time. */
const PART = 65_536

const readPart = (file: number, start: number, end: number): Buffer => {
  const part = Buffer.alloc(end - start)
  return part.subarray(0, readSync(file, part, 0, part.length, start))
}

/**
 * Returns the size up to the end of the last complete line. A process that died while writing leaves a
 * partial line. The file is searched from its end in parts, because a line may be longer than one part.
 */
const wholeSize = (file: number): number => {
  for (let end = fstatSync(file).size; end > 0; ) {
    const start = Math.max(0, end - PART)
    const newline = readPart(file, start, end).lastIndexOf('\n')
    if (newline >= 0) return start + newline + 1
    end = start
  }
  return 0
}

const breaksIn = (part: Buffer): number => {
  let breaks = 0
  for (let at = part.indexOf('\n'); at >= 0; at = part.indexOf('\n', at + 1)) breaks++
  return breaks
}

/** Returns the last `count` lines of a file of this size, with their line breaks. */
const lastLines = (file: number, size: number, count: number): string[] => {
  const parts: Buffer[] = []
  // One line more is read, because the first line that is read may be incomplete.
  for (let end = size, breaks = 0; end > 0 && breaks <= count; ) {
    const start = Math.max(0, end - PART)
    const part = readPart(file, start, end)
    parts.unshift(part)
    breaks += breaksIn(part)
    end = start
  }
  // The parts are joined once: joining at each part would take a time quadratic in the length of the lines.
  return Buffer.concat(parts)
    .toString()
    .split(/(?<=\n)/)
    .slice(-count)
}

/**
 * Appends all lines or none. Lines that are already among the last DELETE_BATCH lines of the file are left
 * out. On a full disk a write may fail after a part of the text was written. This part is then cut off.
 */
const append = (path: string, lines: string[]): void => {
  const file = openSync(path, 'a+', 0o600)
  try {
    const size = wholeSize(file)
    ftruncateSync(file, size)
    const present = new Set(lastLines(file, size, DELETE_BATCH))
    try {
      const bytes = Buffer.from(lines.filter(line => !present.has(line)).join(''))
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

/** Appends events to a file for each month and syncs the files before it returns. */
const appendEvents = (folder: string, events: EventRow[]): void => {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const [month, rows] of Map.groupBy(events, ({ timestamp }) => iso(timestamp).slice(0, 7))) {
    const path = join(folder, `${month}.jsonl`)
    const isNew = !existsSync(path)
    append(path, rows.map(eventLine))
    if (isNew) sync(folder)
  }
}

/**
 * Moves events older than `event_retention`, if set, from the database to files of the data directory
 * (`events/2026-01.jsonl`, JSON Lines), in writes of bounded size. Returns the number of events moved. Events
 * that a webhook has not processed yet stay longer (`eventsBefore`). Events are removed only after they are
 * in a file. A process that dies between the two steps leaves some events in both places. The next call
 * removes them from the database, and does not append them again.
 *
 * Files only grow: the deletion of a user deletes the user's events in the database, but not in the files.
 * The server never deletes a file, because nothing could restore its events. Operators delete the files that
 * they no longer need.
 *
 * @throws Error when a file cannot be written; the events stay in the database
 */
export const sweepEvents = async ({ config, clock, store }: Core): Promise<number> => {
  if (config.event_retention === undefined) return 0
  const before = clock.now() - config.event_retention
  for (let moved = 0; ; ) {
    const events = await store.read(q => eventsBefore(q, before, DELETE_BATCH))
    if (events.length === 0) return moved
    appendEvents(join(config.data_dir, 'events'), events)
    await store.drained()
    moved += await store.write(tx => removeEvents(tx, events))
  }
}
