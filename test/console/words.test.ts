/** Tests the texts of the console in each language. */
import { expect, test } from 'bun:test'
import { basename } from 'node:path'
import { Glob } from 'bun'
import { eventTypes } from '#src/audit/types.ts'
import { locales } from '#src/http/locale.ts'

const app = 'src/console/app'
type Part = string | { [name: string]: Part }

const read = (language: string): Promise<Part> => Bun.file(`${app}/words/${language}.json`).json()
const isPlural = (part: Part): part is Record<string, string> => typeof part === 'object' && 'other' in part

/** Returns each text and each plural with its key. */
const flat = (part: Part, place = ''): [string, string | Record<string, string>][] =>
  typeof part === 'string' || isPlural(part)
    ? [[place, part]]
    : Object.entries(part).flatMap(([name, inner]) => flat(inner, `${place}/${name}`))

const namesIn = (text: string): string[] => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort()
/** The plural forms `zero`, `one` and `two` may omit the number. */
const without = (names: string[], form: string): string[] =>
  /zero|one|two/.test(form) ? names.filter(name => name !== '{count}') : names

const languages = [...new Glob('*.json').scanSync(`${app}/words`)].map(file => basename(file, '.json')).sort()

test('CON-22 each language has each word of the console, with the same names in it', async () => {
  const english = flat(await read('en'))
  for (const language of languages) {
    const words = new Map(flat(await read(language)))
    expect([language, [...words.keys()].sort()]).toEqual([language, english.map(([key]) => key).sort()])
    const rules = new Intl.PluralRules(language)
    const numbers = Array.from({ length: 201 }, (_, number) => number)
    for (const [key, text] of english) {
      const word = words.get(key) ?? ''
      const place = `${language}${key}`
      if (typeof text === 'string') {
        expect([place, typeof word === 'string' && namesIn(word)]).toEqual([place, namesIn(text)])
        expect(word).not.toBe('')
        continue
      }
      const forms = typeof word === 'string' ? {} : word
      const needed = [...new Set([...numbers.map(number => rules.select(number)), 'other'])].sort()
      expect([place, Object.keys(forms).sort()]).toEqual([place, needed])
      for (const [form, each] of Object.entries(forms))
        expect([place, form, without(namesIn(each), form)]).toEqual([
          place,
          form,
          without(namesIn(text.other ?? ''), form),
        ])
    }
  }
})

test('CON-22 one change and one new event have a form of their own in languages that inflect the word', async () => {
  for (const language of ['es', 'fr', 'it', 'pt']) {
    const words = new Map(flat(await read(language)))
    for (const key of ['/users/done', '/log/resume']) {
      const { one, other } = words.get(key) as Record<string, string>
      expect([language, key, one]).not.toEqual([language, key, other])
    }
  }
})

test('CON-22 the console speaks the languages of the pages', () => {
  expect(languages).toEqual([...locales].sort())
})

/** Words for which the pages and the console have another word. */
const unused: Record<string, RegExp> = {
  ar: /وثائق البيانات"|وثيقة بيانات"|بياناتها\.|عرض البيانات|مزوّد|القصير|البرمجية|المُصدِر|خطاف|مستقب/,
  de: /Verwaltung öffnen|Zugriffstoken|In Token /,
  en: /\bslug\b/i,
  es: /passkey/i,
  fr: /passkey|leurs réglages|réglages du serveur|Documentation/i,
  it: /Autorizzazion|\bun nuovo secret\b/,
  ja: /ログイン|短い名前/,
  pl: /klucz(?:e|y)? tajn/,
  pt: /aplicativos?(?! autenticador)|passkey|segundo passo|os claims|gerir|histórico de auditoria/i,
}

test('CON-22 the pages and the console have one word for one thing', async () => {
  for (const language of languages) {
    const pages: Record<string, string> = await Bun.file(`templates/locales/${language}.json`).json()
    const words = flat(await read(language))
    const texts = [...Object.entries(pages), ...words]
    const found = texts.filter(([, text]) => unused[language]?.test(JSON.stringify(text)))
    expect([language, found]).toEqual([language, []])
    // The login page asks for the name that the console shows.
    const slug = String(Object.fromEntries(words)['/organization/slug'])
    expect(pages['login.organization']?.toLowerCase()).toContain(slug.toLowerCase())
  }
})

test('CON-22 who may join and who may sign in have titles of their own', async () => {
  for (const language of languages) {
    const words = new Map(flat(await read(language)))
    expect([language, words.get('/joining/title')]).not.toEqual([language, words.get('/admission/title')])
  }
})

test('CON-22 each event type has a title', async () => {
  const { eventTitles } = (await read('en')) as { eventTitles: Record<string, string> }
  expect(Object.keys(eventTitles).sort()).toEqual([...eventTypes].sort())
})

test('CON-22 screens take all their texts from the files in `words/`, except brand names', async () => {
  const brands = /^(?:Gatehouse|Google|Microsoft|GitLab|GitHub|Discord|OpenID|SAML|OAuth)/
  for (const file of new Glob('**/*.tsx').scanSync(app)) {
    const text = await Bun.file(`${app}/${file}`).text()
    const found = [
      ...text.matchAll(/(?:title|label|hint|lead|text|action|placeholder|empty)="([^"]+)"/g),
      ...text.matchAll(/^ +([A-Z][a-z]+(?: [a-z]+)*[.?]?)$/gm),
      ...text.matchAll(/[^=]>([A-Z][a-z][^<>{}]*)<\//g),
      ...text.matchAll(/'([A-Z][a-zA-Z]+ [a-z][^']*)'/g),
    ].map(([, words = '']) => words)
    expect([file, found.filter(words => !brands.test(words))]).toEqual([file, []])
  }
})
