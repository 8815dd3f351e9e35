import { chmodSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterwards } from './afterwards.ts'

// Temporary files of the tests go into one folder per run. The folder is removed after all other clean-up of
// the run. PostgreSQL runs as another user and must be able to enter the folder.
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-run-'))
chmodSync(folder, 0o711)
process.env.TMPDIR = folder
afterwards(`sleep 6; rm -rf ${folder}`)
