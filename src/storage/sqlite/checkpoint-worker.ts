import { Database } from 'bun:sqlite'
import { fdatasyncSync, openSync } from 'node:fs'

// Runs in a thread with its own connection. The source of this file is passed to the thread as text
// (checkpoint.ts), so the file must not import other files of the project.

declare const self: Worker

/**
 * File descriptor for the sync. It stays open, because closing it would drop SQLite's locks on the file.
 * https://www.sqlite.org/howtocorrupt.html section 2.2
 */
let file: number | undefined

self.onmessage = ({ data: path }: MessageEvent<string>) => {
  try {
    using db = new Database(path, { readwrite: true })
    db.run('PRAGMA wal_checkpoint(PASSIVE)')
    // A partial checkpoint does not sync its data. Without this sync, the complete checkpoint would have to
    // wait for the disk while all writes pause.
    file ??= openSync(path, 'r')
    fdatasyncSync(file)
  } catch {
    // The disk is full or faulty. The log stays, and the next checkpoint tries again.
  }
  self.postMessage('done')
}
