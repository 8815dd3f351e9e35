/**
 * Cases that the package must pass in every runtime, without a test framework. `requestCases` run for each
 * target: the core and each adapter. `packageCases` run only once.
 */
import { services } from './client-cases.ts'
import { keySets } from './key-set-cases.ts'
import { logouts } from './logout-cases.ts'
import { outages } from './outage-cases.ts'
import { rights } from './route-cases.ts'
import { tokens } from './token-cases.ts'
import { settings } from './verifier-cases.ts'
import type { Case } from './world.ts'

export { runCase } from './world.ts'

const requestCases: readonly Case[] = [...tokens, ...rights, ...keySets, ...outages, ...logouts]
const packageCases: readonly Case[] = [...settings, ...services]

/** Returns the cases that run for this target. */
export const casesFor = (target: { name: string }): readonly Case[] =>
  target.name === 'core' ? [...requestCases, ...packageCases] : requestCases
