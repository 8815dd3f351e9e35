import { Database } from 'bun:sqlite'

// A thread with a connection of its own. Its source travels as text (see checkpoint.ts): it imports nothing of ours.

declare const self: Worker

self.onmessage = ({ data: path }: MessageEvent<string>) => {
  try {
    using db = new Database(path, { readwrite: true })
    db.run('PRAGMA wal_checkpoint(PASSIVE)')
  } catch {
    // A full or faulty disk: the log stays, the next round tries again.
  }
  self.postMessage('done')
}
