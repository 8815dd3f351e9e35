import { describe, test } from 'bun:test'
import { casesFor, runCase } from './contract.ts'
import { sources } from './sources.ts'
import { targets } from './targets.ts'

for (const target of targets) {
  describe(`resource server contract: ${target.name}`, () => {
    for (const item of casesFor(target)) test(item.name, () => runCase(sources, target, item))
  })
}
