/**
 * A program that uses the testing package in Node, Deno and Bun. process.test.ts passes the name of the entry
 * and the path of the executable.
 */
import { checkControls } from './cases.ts'

// Not a literal: the bundler must leave it to the runtime, which finds it through the package's exports.
const [name = '', executable] = process.argv.slice(2)
const { startGatehouse } = await import(name)
await checkControls(options => startGatehouse({ ...options, executable }))
console.log('ok')
