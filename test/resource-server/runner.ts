/**
 * Runs the contract with the packed package in Node, Deno and Bun. runtimes.test.ts bundles and starts this
 * program. The program prints one line of JSON: `{ passed, failed: ["target > case: reason"] }`.
 */
import { casesFor, runCase } from './contract.ts'
import { type Sdk, targets } from './targets.ts'

// The name is not a literal, so that the bundler leaves the import to the runtime. The runtime finds the
// module through the exports of the package.
const name = '@gatehouse/resource-server'
const load = (subpath: string) => import(`${name}${subpath}`)
const sdk: Sdk = {
  core: await load(''),
  client: await load('/client'),
  logout: await load('/logout'),
  testing: await load('/testing'),
  elysia: await load('/elysia'),
  hono: await load('/hono'),
  express: await load('/express'),
  fastify: await load('/fastify'),
}

const failed: string[] = []
let passed = 0
for (const target of targets) {
  for (const item of casesFor(target)) {
    await runCase(sdk, target, item).then(
      () => passed++,
      error => failed.push(`${target.name} > ${item.name}: ${error?.stack}`),
    )
  }
}
console.log(JSON.stringify({ passed, failed }))
