/**
 * `bun run test:order [SEED]`: runs the cases of each file in a random order, in one process for each file.
 * Prints the files in which a case depends on another case. The same seed gives the same order.
 */
const seed = process.argv[2] ?? `${1 + Math.floor(Math.random() * 1_000_000)}`
const failed: string[] = []
for (const path of [...new Bun.Glob('test/**/*.test.ts').scanSync()].sort()) {
  const command = ['bun', 'test', '--timeout', '60000', '--randomize', `--seed=${seed}`, `./${path}`]
  const { exitCode, stderr } = Bun.spawnSync(command, { stdout: 'ignore' })
  console.log(`${exitCode === 0 ? 'pass' : 'FAIL'} ${path}`)
  if (exitCode === 0) continue
  failed.push(path)
  process.stdout.write(stderr)
}
console.log(`\nseed ${seed}: ${failed.length === 0 ? 'no file fails' : `these fail: ${failed.join(' ')}`}`)
process.exit(failed.length > 0 ? 1 : 0)
