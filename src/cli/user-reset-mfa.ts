import { hostActor } from '#src/audit/record.ts'
import { removeFactors } from '#src/directory/users/factors/service.ts'
import { listWaysIn } from '#src/directory/users/ways-in-store.ts'
import { print } from './print.ts'
import { type UserOptions, userNamed, withInstance } from './user.ts'

/** Removes all second factors and recovery codes of a user. */
export const userResetMfa = (name: string, options: UserOptions): Promise<void> =>
  withInstance(options, async context => {
    const user = await userNamed(context, name, options.organization)
    const { count, ways } = await context.store.write(async tx => ({
      count: await removeFactors(context, tx, user, hostActor),
      ways: await listWaysIn(tx, user),
    }))
    print(`${user.username}: ${count} ${count === 1 ? 'factor' : 'factors'} removed`)
    if (ways.length === 0)
      print(
        `${user.username} has no way to sign in now: \`gatehouse user link ${user.username}\` makes a link`,
      )
  })
