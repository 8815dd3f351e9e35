import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Returns the source text of the signing thread. The bundler calls this function as a macro and embeds the
 * text in the executable.
 */
export const workerSource = (): string => readFileSync(join(import.meta.dir, 'signing-worker.ts'), 'utf8')
