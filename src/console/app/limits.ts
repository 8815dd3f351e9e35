import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventTypes } from '#src/audit/types.ts'
import { permissions } from '#src/lib/permission.ts'
import { signingAlgs } from '#src/protocol/oidc/signing-algs.ts'
import type { Limit } from './api-form.tsx'

/**
 * Returns lists of names that the console takes from the server. This is a Bun macro: it runs when the
 * console is built, so that the scripts contain no code of the server.
 */
export const consoleLimits = () => ({
  eventTypes: [...eventTypes],
  permissions: [...permissions],
  signingAlgs: [...signingAlgs],
})

/**
 * Returns the server program on the page "connect" of the guide. The program uses `login.mjs`. This function
 * is a Bun macro.
 */
export const serverProgram = (): string => {
  const guide = readFileSync(join(import.meta.dir, '../../../templates/guide/connect.md'), 'utf8')
  const [program] = /^import \{ createServer.*?(?=\n```)/ms.exec(guide) ?? []
  if (!program)
    throw new Error('templates/guide/connect.md has no program that begins with `import { createServer`')
  return program
}

/**
 * Runs a file and returns the JSON that it prints. A macro cannot import a module that contains macros. The
 * modules of the schemas contain macros, so a separate process reads them.
 */
const printedBy = (file: string) => {
  const path = join(import.meta.dir, '..', file)
  return JSON.parse(Bun.spawnSync([process.execPath, path], { stderr: 'inherit' }).stdout.toString())
}

/**
 * Returns the default of each field of a seed file as JSON, by section and name. A field without a default
 * has ''. This is a Bun macro.
 */
export const seedFields = (): Record<string, Record<string, string>> => printedBy('seed-fields.ts')

/**
 * Returns the limits of the fields in the OpenAPI document, by operation and field name. The operations are
 * those on a list or on one object, such as `POST /users` and `PUT /users/*`. In a field name `*` stands for
 * the index of a list or the key of a record. This is a Bun macro.
 */
export const fieldLimits = (): Record<string, Record<string, Limit>> => printedBy('field-limits.ts')
