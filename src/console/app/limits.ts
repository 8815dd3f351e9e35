import { eventTypes } from '#src/audit/types.ts'

/** Returns what the console needs of the server's rules. This is a Bun macro: it runs when the console is built. */
export const consoleLimits = () => ({ eventTypes: [...eventTypes] })
