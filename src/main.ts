#!/usr/bin/env bun
import { VERSION_LINE } from './lib/version.ts'

const args = process.argv.slice(2)
// `--version` loads no parser and no settings, because loading them takes three times as much CPU time as
// starting the runtime.
if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  console.log(VERSION_LINE)
  process.exit(0)
}
const { run } = await import('./cli/run.ts')
process.exit(await run(args))
