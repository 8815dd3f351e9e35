/** `bun run test:reliability`: every test that a row of the table names, in the long form; then what was measured, by row. */

export {}

const child = Bun.spawn(['bun', 'test', '--test-name-pattern', 'R-[0-9][0-9] ', ...process.argv.slice(2)], {
  env: { ...process.env, RELIABILITY: process.env.RELIABILITY ?? 'long' },
  stdout: 'pipe',
  stderr: 'inherit',
})
let output = ''
for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
  process.stdout.write(text)
  output += text
}
console.log(
  `\n${output
    .match(/^R-\d\d {2}.*$/gm)
    ?.sort()
    .join('\n')}`,
)
process.exit(await child.exited)
