import type { Context } from '#src/context.ts'
import { devClock } from '#src/dev/clock.ts'
import { development } from '#src/dev/development.ts'
import { captureMail } from '#src/mail/captured.ts'
import type { Json } from './app.ts'
import { EXECUTABLE } from './executable.ts'

export interface Development extends AsyncDisposable {
  /** The JSON document that the server prints when it is ready. It is undefined on a terminal. */
  ready: Json
  output(): string
  /** Resolves to the output once it matches the pattern. */
  untilOutput(pattern: RegExp): Promise<string>
  kill(signal: 'SIGTERM'): void
  exited: Promise<number>
}

/** Runs `gatehouse dev` on a free port, with or without a terminal. */
export const startDev = async (
  args: string[] = [],
  { terminal = false, env = {} } = {},
): Promise<Development> => {
  const command = [EXECUTABLE, 'dev', '--port', '0', ...args]
  const child = Bun.spawn(terminal ? ['script', '-qec', command.join(' '), '/dev/null'] : command, {
    env: { PATH: process.env.PATH ?? '', TERM: 'xterm-256color', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  let output = ''
  let more = Promise.withResolvers<void>()
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) {
      output += decoder.decode(chunk, { stream: true })
      more.resolve()
      more = Promise.withResolvers()
    }
  }
  const ended = Promise.all([collect(child.stdout), collect(child.stderr)])
  const untilOutput = async (pattern: RegExp): Promise<string> => {
    while (!pattern.test(output)) {
      const over = await Promise.race([more.promise.then(() => false), ended.then(() => true)])
      if (over && !pattern.test(output)) throw new Error(`never printed ${pattern}:\n${output}`)
    }
    return output
  }
  await untilOutput(terminal ? /gatehouse token .*\r\n/ : /\{"event":"ready".*\}\n/)
  const line = output.split('\n').find(text => text.startsWith('{"event":"ready"'))
  return {
    ready: line && JSON.parse(line),
    output: () => output,
    untilOutput,
    kill: signal => child.kill(signal),
    exited: ended.then(() => child.exited),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}

/** Wraps a server in this process with the development controls. */
export const developmentOf = (context: Context, next: Parameters<typeof development>[1]) =>
  development(context, next, {
    clock: devClock(),
    mail: captureMail(),
    token: 'control-token',
    client_id: 'web',
    remote: false,
    exposed: false,
    password: '',
  })
