import type { Core } from '#src/context.ts'
import type { Transaction } from '#src/storage/store.ts'
import type { SeedOf } from './schema.ts'

/**
 * State of one run: a context whose store is the open transaction, and the results of the work that was done
 * before the transaction.
 */
export interface SeedRun {
  context: Core
  tx: Transaction
  /** Returns the hash of a new user's password. Returns null for a user without a password. */
  hashOf(user: SeedOf<'users'>): string | null
  /** Sections with mistakes found by the parser, and keys of refused or skipped entries. */
  refused: Set<string>
  /**
   * True when the file has a user of this name. A mistake of this user is reported at the user's entry, and
   * not again at the groups that name the user.
   */
  isNamed(organization: string, username: string): boolean
  /** Leaves a part of the step for a later transaction. Undefined when one transaction has all changes. */
  later?(part: (work: SeedRun) => Promise<undefined>): void
}

/** Returns a context whose store is the open transaction, so that services write in this transaction. */
export const withTransaction = (base: Core, tx: Transaction): Core => ({
  ...base,
  store: {
    ...base.store,
    read: body => body(tx),
    write: body => body(tx),
    // Other writes wait for the end of the transaction, so a pause would only make them wait longer.
    drained: async () => {},
    onChange: () => {},
    caches: new Map(),
  },
})
