import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterwards } from './afterwards.ts'

// What tests put into the machine's temporary folder goes into one of this run, which goes when it ends, and after what
// else is done then. PostgreSQL, a user of its own, passes through it.
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-run-'))
chmodSync(folder, 0o711)
process.env.TMPDIR = folder
afterwards(`sleep 6; rm -rf ${folder}`)
