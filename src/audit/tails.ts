import type { Core } from '#src/context.ts'

/** Ends all open streams of events. */
export const endFollowing = ({ tails }: Pick<Core, 'tails'>): void => {
  for (const tail of tails.open) tail.end()
}
