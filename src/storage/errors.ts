import { AppError } from '#src/lib/app-error.ts'

/** The store or a database file cannot be used. The command line shows the message as one line. */
export class StorageError extends Error {
  /**
   * Exit code of the command. The default is EX_CONFIG (78) of sysexits.h. The code is EX_TEMPFAIL (75) when
   * a later attempt can succeed. It is 2 for a wrong setting or argument, and 1 for a source or target that
   * the command refuses.
   */
  readonly exit_code: number

  constructor(message: string, exit_code = 78) {
    super(message)
    this.name = 'StorageError'
    this.exit_code = exit_code
  }
}

/** The database is empty or has the schema of an older version, and the caller does not allow migrations. */
export class NotMigrated extends StorageError {
  readonly is_empty: boolean

  constructor(message: string, is_empty: boolean) {
    super(message)
    this.is_empty = is_empty
  }
}

/**
 * Returns the codes of an error and of its causes. The property `code` has the codes of SQLite and Bun. The
 * property `errno` has PostgreSQL's SQLSTATE.
 */
const codesOf = (error: unknown): string[] =>
  error instanceof Error
    ? [String(Reflect.get(error, 'code')), String(Reflect.get(error, 'errno')), ...codesOf(error.cause)]
    : []

const has =
  (pattern: RegExp) =>
  (error: unknown): boolean =>
    codesOf(error).some(code => pattern.test(code))

/** True when a unique index refused a row. */
export const isUniqueViolation = has(/^(SQLITE_CONSTRAINT_(UNIQUE|PRIMARYKEY)|23505)$/)

/** True when another process held the SQLite lock for too long. */
export const isBusy = has(/^SQLITE_BUSY/)

/**
 * True after a conflict with a concurrent transaction. A further attempt of the failed transaction can
 * succeed.
 */
export const isConflict = has(/^(40001|40P01)$/)

/** True when a lock was not available in time. */
export const isHeldUp = has(/^55P03$/)

/**
 * True when the connection is lost or cannot be opened:
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
export const isLost = has(/^(ERR_POSTGRES_\w*(CONNECTION|TIMEOUT)\w*|08\w{3}|57P0[1-5]|25P03)$/)

/** True when PostgreSQL ended the session at a statement. It executes no later statement of the session. */
export const isEnded = has(/^57P0[1-5]$/)

/**
 * True when the connection is not lost, but a new connection can help. After a failover the old connection
 * can lead to a server that is now a standby, or its plans can be older than the schema. In both cases
 * PostgreSQL has stored nothing.
 */
export const needsNewConnection = has(/^(0A000|25006)$/)

/**
 * True for a failure that may be temporary:
 *
 * - SQLite: the file cannot be opened, read or written, memory is short, or another process holds a lock.
 * - PostgreSQL: the connection is lost, a transaction conflicted or was canceled, or a lock was not available
 *   in time. Connections, memory or disk space are short. A failover is going on, or the server has a fault.
 *   The database, its users, passwords or rights are being changed.
 */
export const isStorageFailure = (error: unknown): boolean => isLost(error) || passing(error)
const passing = has(
  /^(SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|NOMEM|PROTOCOL)|0A000|40001|40P01|25006|28\w{3}|3D000|42501|53\w{3}|55000|55P03|57014|58\w{3}|XX\w{3})/,
)

const isOfDisk = has(/^SQLITE_(FULL|IOERR)/)

/**
 * Returns the message of a failure. For a disk error the message also asks whether the disk is full. When
 * SQLite opens a file on a full disk, it reports only an I/O error.
 */
export const failureText = (error: unknown): string =>
  `${error instanceof Error ? error.message : error}${isOfDisk(error) ? ' (is the disk full?)' : ''}`

/** Returns the 503 for a failed read or write. `Retry-After` is 1 s, because locks are released soon. */
export const unavailable = (cause: unknown): AppError =>
  new AppError('temporarily_unavailable', 'The database is temporarily unavailable. Try again in a moment.', {
    headers: { 'retry-after': '1' },
    cause,
  })
