/**
 * A program that uses the testing package in Node, Deno and Bun. process.test.ts passes the name of the entry
 * and the path of the executable.
 */
import { checkControls, checkTls } from './cases.ts'

// The name is not a literal, so that the bundler leaves the import to the runtime. The runtime finds the
// module through the exports of the package.
const [name = '', executable] = process.argv.slice(2)
const { startGatehouse } = await import(name)
await checkControls(options => startGatehouse({ ...options, executable }))
await checkTls(options => startGatehouse({ ...options, executable }))
console.log('ok')
