import { Glob } from 'bun'

/**
 * Openings and words that make a sentence read like a translation. This check finds them in comments,
 * messages and the guide. `.github/CONTRIBUTING.md` has the rules.
 */
const OPENING =
  /^(?:What|Whoever|Whose|Whence|Whom|Who|Whether|How|Where|Of|Upon|Nobody|Somebody|One that|Those (?:of|that)|Begins the ids|So that|As long|So many|Here,? for)\b/
const ANYWHERE =
  /\b(?:whoever|whence|whomever|upon|anew|of ours|of theirs|is none|are none|so many|as good as|belongs into|takes? along|has run out|in vain|goes by|nobody's|somebody's|whatever it|counts for nothing|as of then|logged[ -]in|logs in|logging in|(?:to|may|can|not) log in|by hand, not|is told|tells it|the beginnings of)\b/i

const COMMENT = /\/\*\*?([\s\S]*?)\*\/|(?<=^|\s)\/\/ ?(.*)$/gm

/** Texts of comments, with the line that each begins on. Consecutive `//` lines are one text. */
const commentsOf = (source: string): { line: number; text: string }[] => {
  // A glob in a string can contain `/*`, which does not begin a comment there.
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

/** Returns the sentences of a text. A colon also ends a sentence. */
const sentencesOf = (text: string): string[] =>
  text.replace(/`[^`]*`/g, '`x`').split(/(?<=[.!?:;])\s+(?=[A-Z`])/)

/** Sentences in quotes, such as error messages and the words of the console, with their lines. */
const messagesOf = (source: string): { line: number; text: string }[] =>
  source.split('\n').flatMap((text, i) =>
    [...text.matchAll(/(['`])([A-Z][^'`]{30,}[.!?])\1/g)].map(match => ({
      line: i + 1,
      text: match[2] ?? '',
    })),
  )

/** Paragraphs and cells of a page of the guide, with the lines that they begin on; code is left out. */
const paragraphsOf = (page: string): { line: number; text: string }[] => {
  const blocks: { line: number; text: string }[] = []
  let isOpen = false
  for (const [i, line] of page
    .replace(/```[\s\S]*?```/g, block => block.replace(/[^\n]/g, ''))
    .split('\n')
    .entries()) {
    const cells = line.startsWith('|') ? line.split(' | ') : [line]
    for (const cell of cells) {
      const text = cell.replace(/^[-|\s]+/, '').trim()
      const last = blocks.at(-1)
      if (isOpen && last && cells.length === 1 && !/^[-|#]/.test(line) && text) last.text += ` ${text}`
      else if (text && !line.startsWith('#')) blocks.push({ line: i + 1, text })
    }
    isOpen = cells.length === 1 && line.trim() !== '' && !line.startsWith('#')
  }
  // A short text, such as a cell of one or two words, is a title and not a sentence.
  return blocks.filter(({ text }) => text.length > 25)
}

/** Returns the titles of tests and of their groups, with their lines. */
const titlesOf = (source: string): { line: number; text: string }[] =>
  source.split('\n').flatMap((line, i) =>
    [...line.matchAll(/\b(?:test|describe)(?:\.\w+)?\((['`])(.+?)\1,/g)].map(match => ({
      line: i + 1,
      text: match[2] ?? '',
    })),
  )

const code = [...new Glob('{src,test}/**/*.{ts,tsx}').scanSync(), '.ci/drizzle.ts'].sort()
const pages = ['templates/guide/*.md', '.github/*.md', 'src/**/*.md', 'test/**/*.md', 'README.md']
  .flatMap(glob => [...new Glob(glob).scanSync({ dot: true })])
  .sort()
const textsOf = (file: string, source: string) => {
  if (file.endsWith('.md')) return paragraphsOf(source)
  // The description of a field may begin with a question word, because it completes the field's name.
  const messages = messagesOf(source).filter(({ text }) => !/^(?:Whether|Who|How|Where)\b/.test(text))
  return [...commentsOf(source), ...(file.startsWith('src') ? messages : titlesOf(source))]
}
const findings: string[] = []
for (const file of [...code, ...pages])
  for (const { line, text } of textsOf(file, await Bun.file(file).text()))
    for (const sentence of sentencesOf(text))
      if (OPENING.test(sentence) || ANYWHERE.test(sentence))
        findings.push(`${file}:${line}: ${sentence.slice(0, 120)}`)

if (findings.length > 0) {
  console.log(findings.join('\n'))
  console.log(
    `\n${findings.length} sentences break the rules of .github/CONTRIBUTING.md: subject first, present tense, direct statements.`,
  )
  process.exit(1)
}
