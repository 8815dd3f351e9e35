import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The text of signing-worker.ts. For use as a macro, so that it is part of the executable. */
export const workerSource = (): string => readFileSync(join(import.meta.dir, 'signing-worker.ts'), 'utf8')
