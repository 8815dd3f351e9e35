import { hostActor } from '#src/audit/record.ts'
import { removeFactors } from '#src/directory/users/factors/service.ts'
import { type UserOptions, userNamed, withInstance } from './user.ts'

/** Removes all second factors and recovery codes of a user. */
export const userResetMfa = (name: string, options: UserOptions): Promise<void> =>
  withInstance(options, async context => {
    const user = await userNamed(context, name, options.organization)
    const count = await context.store.write(tx => removeFactors(context, tx, user, hostActor))
    console.log(`${user.username}: ${count} ${count === 1 ? 'factor' : 'factors'} removed`)
  })
