import { Glob } from 'bun'

/** A rule of the product: a short text, a stable id, and the standard or decision that it comes from. */
export interface Rule {
  id: string
  sentence: string
  source: string
  file: string
}

const ROW = /^\| ([A-Z]{1,3}-\d\d) \| (.+) \| (.+) \|$/gm

/** All rules: the rows of each table in this folder, in the order of the files. */
export const readRules = async (): Promise<Rule[]> => {
  const files = [...new Glob('*.md').scanSync(import.meta.dir)].sort()
  const tables = files.map(async file =>
    [...(await Bun.file(`${import.meta.dir}/${file}`).text()).matchAll(ROW)].map(
      ([, id = '', sentence = '', source = '']) => ({ id, sentence, source, file }),
    ),
  )
  return (await Promise.all(tables)).flat()
}

/** Returns the rule ids at the beginning of a title such as `O-62, TOK-03 only hashes are stored`. */
export const idsOf = (title: string): string[] =>
  /^(?:[A-Z]{1,3}-\d\d,? )+/.exec(title)?.[0].match(/[A-Z]{1,3}-\d\d/g) ?? []
