import { Glob } from 'bun'

/**
 * Finds comments and messages that read as translated: a sentence opens with its subject or verb, and says things directly.
 * `.github/CONTRIBUTING.md` has the rules.
 */
const OPENING =
  /^(?:What|Whoever|Whose|Whence|Whom|Who|Whether|How|Where|Of|Upon|Nobody|So that|As long|So many|Here,? for)\b/
const ANYWHERE =
  /\b(?:whoever|whence|whomever|upon|anew|of ours|of theirs|is none|are none|so many|as good as|belongs into|takes? along|has run out|in vain|goes by|nobody's|somebody's|whatever it)\b/i

const COMMENT = /\/\*\*?([\s\S]*?)\*\/|(?<=^|\s)\/\/ ?(.*)$/gm

/** Texts of comments, with the line that each begins on. Consecutive `//` lines are one text. */
const commentsOf = (source: string): { line: number; text: string }[] => {
  // A glob in a string would read as the start of a comment.
  const joined = source
    .replace(/'[^'\n]*(?:\/\*|\*\/)[^'\n]*'/g, "''")
    .replace(/(^[ \t]*)\/\/ ?(.*)\n(?:[ \t]*\/\/ ?.*\n)+/gm, block => {
      const lines = block
        .split('\n')
        .filter(Boolean)
        .map(line => line.replace(/^\s*\/\/ ?/, ''))
      return `/* ${lines.join('\n')} */${'\n'.repeat(1)}`
    })
  return [...joined.matchAll(COMMENT)].map(match => ({
    line: source
      .slice(0, source.indexOf((match[1] ?? match[2] ?? '').trim().split('\n')[0] ?? ''))
      .split('\n').length,
    text: (match[1] ?? match[2] ?? '')
      .replace(/^\s*\* ?/gm, '')
      .replace(/\s+/g, ' ')
      .trim(),
  }))
}

/** The first word of each sentence; `e.g.` and the like end none. */
const sentencesOf = (text: string): string[] =>
  text.replace(/`[^`]*`/g, '`x`').split(/(?<=[.!?:;])\s+(?=[A-Z`])/)

const files = [...new Glob('{src,test}/**/*.ts').scanSync(), '.drizzle.ts'].sort()
const findings: string[] = []
for (const file of files)
  for (const { line, text } of commentsOf(await Bun.file(file).text()))
    for (const sentence of sentencesOf(text))
      if (OPENING.test(sentence) || ANYWHERE.test(sentence))
        findings.push(`${file}:${line}: ${sentence.slice(0, 120)}`)

if (findings.length > 0) {
  console.log(findings.join('\n'))
  console.log(
    `\n${findings.length} sentences open or read as CONTRIBUTING forbids: subject first, present tense, said directly.`,
  )
  process.exit(1)
}
