import type { SeedRun } from './kinds.ts'
import type { SeedSection } from './schema.ts'

/** A change that `apply` makes and `plan` lists. */
export interface Change {
  action: 'create' | 'update' | 'delete'
  section: SeedSection
  name: string
  /** The changed fields of an update. */
  fields?: string[]
}

/** Work on one entry: an entry of the file, or a stored entry that is pruned. */
export interface Step {
  path: string
  /** Resolves to the change, or to undefined when the entry is up to date. */
  run(work: SeedRun): Promise<Change | undefined>
}
