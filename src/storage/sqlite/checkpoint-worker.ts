import { Database } from 'bun:sqlite'
import { fdatasyncSync, openSync } from 'node:fs'

// A thread with a connection of its own. Its source travels as text (see checkpoint.ts): it imports nothing of ours.

declare const self: Worker

/** Never closed: that would give up the locks that SQLite has on the file. https://www.sqlite.org/howtocorrupt.html section 2.2 */
let file: number | undefined

self.onmessage = ({ data: path }: MessageEvent<string>) => {
  try {
    using db = new Database(path, { readwrite: true })
    db.run('PRAGMA wal_checkpoint(PASSIVE)')
    // What an incomplete copy has written is not on the disk yet: the complete one, for which writes wait, would wait for it.
    file ??= openSync(path, 'r')
    fdatasyncSync(file)
  } catch {
    // A full or faulty disk: the log stays, the next round tries again.
  }
  self.postMessage('done')
}
