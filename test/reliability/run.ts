export {}

/**
 * `bun run test:reliability`: runs the long form of every test whose title has the id of a reliability rule,
 * such as `R-24`. Prints the measurements, sorted by id.
 */
const files: string[] = []
for (const path of new Bun.Glob('test/**/*.test.ts').scanSync())
  if (/\bR-\d\d /.test(await Bun.file(path).text())) files.push(`./${path}`)

const asked = process.argv.slice(2)
const child = Bun.spawn(
  ['bun', 'test', '--test-name-pattern', 'R-[0-9][0-9] ', ...(asked.length > 0 ? asked : files.sort())],
  {
    env: { ...process.env, RELIABILITY: process.env.RELIABILITY ?? 'long' },
    stdout: 'pipe',
    stderr: 'inherit',
  },
)
let output = ''
for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
  process.stdout.write(text)
  output += text
}
const figures = output.match(/^R-\d\d {2}.*$/gm) ?? []
console.log(`\n${figures.sort().join('\n')}`)
process.exit(await child.exited)
