// Builds the executable into --outfile, by default dist/gatehouse. Other arguments, such as --target, are
// passed to `bun build`.

import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { $, Glob } from 'bun'

const args = process.argv.slice(2)
// The executable embeds the SQL of the statements that a start executes. The check fails when the generated
// file is out of date.
await $`${process.execPath} ${join(import.meta.dir, 'statements.ts')} --check`
// The executable embeds the rows of the default seed. The check fails when the generated file is out of
// date.
await $`${process.execPath} ${join(import.meta.dir, 'seed-rows.ts')} --check`
const given = args.indexOf('--outfile')
const outfile = (given >= 0 && args[given + 1]) || join(import.meta.dir, '../dist/gatehouse')
// With --splitting a command evaluates only the modules that it imports.
// --bytecode-order places the bytecode that a start needs in one part of the file (bytecode-order.ts).
// The executable reads no .env and no bunfig.toml of the current folder, because a file there must not change
// settings or run code.
// --define replaces __dirname. Otherwise the executable would contain the path of the folder in which it was
// built.
// --compile-jit-policy delays the just-in-time compiler, because a start runs most functions only a few
// times. cli/run.ts restores the normal policy after the start.
const { exitCode } =
  await $`${process.execPath} build --compile --bytecode --format=esm --minify --splitting --compile-jit-policy=8 --bytecode-order=${join(import.meta.dir, 'bytecode.order')} --sourcemap --no-compile-autoload-dotenv --no-compile-autoload-bunfig --define __dirname='"/"' --outfile ${outfile} ${args} src/main.ts`.nothrow()
if (exitCode !== 0) process.exit(exitCode)
// The executable contains the source maps. Bun also writes them as separate files, which are not needed.
for (const map of new Glob('*.map').scanSync(dirname(outfile))) rmSync(join(dirname(outfile), map))
