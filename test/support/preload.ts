import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterwards } from './afterwards.ts'

// Temporary files of the tests go into one folder per run. It is removed after the run and its
// other clean-up. PostgreSQL runs as another user and must be able to enter it.
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-run-'))
chmodSync(folder, 0o711)
process.env.TMPDIR = folder
afterwards(`sleep 6; rm -rf ${folder}`)
