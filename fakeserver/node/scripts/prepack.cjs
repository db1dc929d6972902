'use strict'
// Puts the built program and the licence into the package: FAKESERVER_PROGRAM, or cargo's release build.
const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { NATIVE, targetOf } = require('../lib/program.cjs')

const root = path.join(__dirname, '..', '..', '..')
const name = process.platform === 'win32' ? 'fakeserver.exe' : 'fakeserver'
const program = process.env.FAKESERVER_PROGRAM ?? path.join(process.env.CARGO_TARGET_DIR ?? path.join(root, 'target'), 'release', name)
if (!fs.existsSync(program)) throw new Error(`${program} is not there: run \`cargo build --release -p fakeserver\` first`)

const target = targetOf(program)
const { version } = require('../package.json')
if (target.platform === process.platform && target.arch === process.arch) {
  const printed = execFileSync(program, ['--version'], { encoding: 'utf8' }).trim()
  if (printed !== `fakeserver ${version}`) throw new Error(`the package is of version ${version}, its program says "${printed}"`)
}
fs.rmSync(NATIVE, { recursive: true, force: true })
fs.mkdirSync(NATIVE, { recursive: true })
fs.copyFileSync(program, path.join(NATIVE, target.file))
fs.chmodSync(path.join(NATIVE, target.file), 0o755)
fs.writeFileSync(path.join(NATIVE, 'target.json'), `${JSON.stringify(target)}\n`)
fs.copyFileSync(path.join(root, 'LICENSE'), path.join(__dirname, '..', 'LICENSE'))
