export {}

/** The whole suite: builds the executable that some tests start, runs them all, ends with a line that any CI can read. */
const run = async (command: string[], onText: (text: string) => void = () => {}): Promise<number> => {
  const child = Bun.spawn(command, { stdout: 'inherit', stderr: 'pipe' })
  for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
    process.stderr.write(chunk)
    onText(chunk)
  }
  return child.exited
}

const built = await run(['bun', 'run', 'build'])
if (built !== 0) process.exit(built)

let output = ''
const code = await run(['bun', 'test', ...process.argv.slice(2)], text => {
  output = (output + text).slice(-2_000)
})
const count = (word: string): number => Number(new RegExp(`^\\s*(\\d+) ${word}$`, 'm').exec(output)?.[1] ?? 0)
const skipped = count('skip')
console.log(`\n${count('pass')} passed, ${count('fail')} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exit(code)
