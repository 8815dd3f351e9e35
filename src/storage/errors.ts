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

/** Codes of SQLite and of Bun, and PostgreSQL's SQLSTATE, which Bun has in `errno`; there in `cause` too. */
const codesOf = (error: unknown): string[] =>
  error instanceof Error
    ? [String(Reflect.get(error, 'code')), String(Reflect.get(error, 'errno')), ...codesOf(error.cause)]
    : []

const has =
  (pattern: RegExp) =>
  (error: unknown): boolean =>
    codesOf(error).some(code => pattern.test(code))

/** Whether a unique index refused a row. */
export const isUniqueViolation = has(/^(SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY)|23505)$/)

export const isBusy = has(/^SQLITE_BUSY/)

/** Another transaction came between: the same one may succeed when it is run again. */
export const isConflict = has(/^(40001|40P01)$/)

/** A lock that others have was not had in time. */
export const isHeldUp = has(/^55P03$/)

/** The connection is gone, or there is none at present. https://www.postgresql.org/docs/current/errcodes-appendix.html */
export const isLost = has(/^(ERR_POSTGRES_\w*(CONNECTION|TIMEOUT)\w*|08\w{3}|57P0[1-5]|25P03)$/)

/**
 * The file, its disk or the server refuses for reasons that may pass: full, read-only, faulty, held by another process,
 * out of connections, in the middle of a failover or of a change of passwords or rights.
 */
export const isStorageFailure = (error: unknown): boolean => isLost(error) || passing(error)
const passing = has(
  /^(SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|NOMEM|PROTOCOL)|40001|40P01|25006|28\w{3}|3D000|42501|53\w{3}|55000|55P03|57014|58\w{3}|XX\w{3})/,
)

export const unavailable = (cause: unknown): AppError =>
  new AppError('temporarily_unavailable', 'Nothing can be stored at present. Try again in a moment.', {
    headers: { 'retry-after': '1' },
    cause,
  })
