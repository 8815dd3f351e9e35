import { AppError } from '#src/lib/app-error.ts'

/** Why the store cannot be opened, in one line for the person at the command line. */
export class StorageError extends Error {
  /** EX_CONFIG of sysexits.h, or EX_TEMPFAIL (75) when trying again later can help. */
  readonly exit_code: number

  constructor(message: string, exit_code = 78) {
    super(message)
    this.name = 'StorageError'
    this.exit_code = exit_code
  }
}

const codesOf = (error: unknown): unknown[] =>
  error instanceof Error ? [Reflect.get(error, 'code'), ...codesOf(error.cause)] : []

const uniqueViolations: ReadonlySet<unknown> = new Set([
  'SQLITE_CONSTRAINT_UNIQUE',
  'SQLITE_CONSTRAINT_PRIMARYKEY',
  '23505',
])

/** Whether a unique index refused a row: SQLite's extended code, or PostgreSQL's SQLSTATE, there in `cause`. */
export const isUniqueViolation = (error: unknown): boolean =>
  codesOf(error).some(code => uniqueViolations.has(code))

export const isBusy = (error: unknown): boolean =>
  codesOf(error).some(code => String(code).startsWith('SQLITE_BUSY'))

/** The file or its disk refuses for reasons that may pass: full, read-only, faulty, held by another process. */
export const isStorageFailure = (error: unknown): boolean =>
  codesOf(error).some(code =>
    /^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|NOMEM|PROTOCOL)/.test(String(code)),
  )

export const unavailable = (cause: unknown): AppError =>
  new AppError('temporarily_unavailable', 'Nothing can be stored at present. Try again in a moment.', {
    headers: { 'retry-after': '1' },
    cause,
  })
