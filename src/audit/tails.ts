import type { Core } from '#src/context.ts'

/** Ends all open streams of events: a server that stops would otherwise wait for streams that never end. */
export const endFollowing = ({ tails }: Pick<Core, 'tails'>): void => {
  for (const tail of tails.open) tail.end()
}
