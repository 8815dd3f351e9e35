// Builds the executable into --outfile, by default dist/gatehouse. Other arguments, such as --target, are
// passed to `bun build`.

import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { $, Glob } from 'bun'

const args = process.argv.slice(2)
// The executable embeds the generated SQL of a start. The check fails when the code would build other SQL.
await $`${process.execPath} ${join(import.meta.dir, 'statements.ts')} --check`
// The executable embeds the generated rows of the default seed. The check fails when the seed would now write
// other rows.
await $`${process.execPath} ${join(import.meta.dir, 'seed-rows.ts')} --check`
const given = args.indexOf('--outfile')
const outfile = (given >= 0 && args[given + 1]) || join(import.meta.dir, '../dist/gatehouse')
// With --splitting a command evaluates only the modules that it imports, not those of all commands.
// The order puts the bytecode of a start together (bytecode-order.ts).
// A start runs most functions a few times only, so compiling them to machine code does not pay. cli/run.ts
// sets the policy of the just-in-time compiler back to normal.
const { exitCode } =
  await $`${process.execPath} build --compile --bytecode --format=esm --minify --splitting --compile-jit-policy=8 --bytecode-order=${join(import.meta.dir, 'bytecode.order')} --sourcemap --no-compile-autoload-dotenv --no-compile-autoload-bunfig --define __dirname='"/"' --outfile ${outfile} ${args} src/main.ts`.nothrow()
if (exitCode !== 0) process.exit(exitCode)
// The executable contains the source maps. Bun also writes them beside it, one file for each chunk.
for (const map of new Glob('*.map').scanSync(dirname(outfile))) rmSync(join(dirname(outfile), map))
