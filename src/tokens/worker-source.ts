import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Returns the text of signing-worker.ts. Used as a macro, which embeds it in the executable. */

/** Returns the source text of the signing thread. */
export const workerSource = (): string => readFileSync(join(import.meta.dir, 'signing-worker.ts'), 'utf8')
