'use strict'
// Where the program is, and whether it can run here.
const fs = require('node:fs')
const path = require('node:path')

// The kernel starts a dynamically linked program by way of the loader that the program names, and says "no such file" if that is missing.
const ELF_HEAD_BYTES = 4096
const ELF_MACHINES = { 3: 'ia32', 40: 'arm', 62: 'x64', 183: 'arm64', 243: 'riscv64' }

const NATIVE = path.join(__dirname, '..', 'native')
const REBUILD = 'build it for this machine (`cargo build --release -p fakeserver`, then `npm pack` in fakeserver/node), or name a program in FAKESERVER_PROGRAM'

// The path of the program: FAKESERVER_PROGRAM, or the one in the package.
function programPath() {
  const given = process.env.FAKESERVER_PROGRAM
  if (given) {
    if (!fs.existsSync(given)) throw new Error(`FAKESERVER_PROGRAM names ${given}, which is not there`)
    return path.resolve(given)
  }
  let target
  try {
    target = JSON.parse(fs.readFileSync(path.join(NATIVE, 'target.json'), 'utf8'))
  } catch (cause) {
    throw new Error(`this package of fakeserver holds no program: ${REBUILD}`, { cause })
  }
  const obstacle = whatPrevents(target)
  if (obstacle) throw new Error(`this package of fakeserver was built for ${target.platform}-${target.arch}, ${obstacle}: ${REBUILD}`)
  return path.join(NATIVE, target.file)
}

function whatPrevents({ platform, arch, loader }) {
  if (platform !== process.platform || arch !== process.arch) return `this is ${process.platform}-${process.arch}`
  if (loader && !fs.existsSync(loader)) return `with a C library whose loader ${loader} is not on this system`
  return null
}

// What a program was built for, as its own head says, or that it was built here where it does not say.
function targetOf(file) {
  const head = Buffer.alloc(ELF_HEAD_BYTES)
  const opened = fs.openSync(file, 'r')
  try {
    fs.readSync(opened, head, 0, ELF_HEAD_BYTES, 0)
  } finally {
    fs.closeSync(opened)
  }
  const named = { platform: process.platform, arch: process.arch, file: path.basename(file) }
  if (head.toString('latin1', 0, 4) !== '\x7fELF') return named
  const loader = /\/[\w./-]*\/ld-[\w.-]+/.exec(head.toString('latin1'))
  return { ...named, platform: 'linux', arch: ELF_MACHINES[head.readUInt16LE(18)] ?? 'unknown', loader: loader ? loader[0] : null }
}

module.exports = { NATIVE, programPath, targetOf }
