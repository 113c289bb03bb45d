"""A page of ngrad report with damaged data says so. Usage: damaged.py CHROMIUM PAGE"""
import sys

from browser import Browser

browser = Browser(sys.argv[1])
try:
    browser.open(sys.argv[2])
    said = browser.run("document.getElementById('page').textContent")
finally:
    browser.close()
print(said[:200])
sys.exit('The data of this page is damaged' not in said)
